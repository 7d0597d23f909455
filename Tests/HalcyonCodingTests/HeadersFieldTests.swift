import HalcyonCoding
import HalcyonModel
import Testing

@Suite struct HeadersFieldTests {
    @Test(arguments: ["", #""headers":null"#, #""headers":{}"#]) func isEmptyByDefault(members: String) throws {
        #expect(try read(members).headers.isEmpty)
        #expect(try read(members).keys == read("").keys)
    }

    @Test func readsHeadersWithLowercaseSortedNames() throws {
        let headers = try read(#""headers":{"X-A":"1","Accept":"image/webp"}"#).headers
        #expect(headers.fields == [.init("accept", "image/webp"), .init("x-a", "1")])
    }

    @Test(arguments: [
        (#""headers":[]"#, "headers: expected an object, found an array"),
        (#""headers":{"X":1}"#, "headers.X: expected a string, found a number"),
        (#""headers":{"X":7}"#, "headers.X: expected a string, found a number"),
        (#""headers":{"X":"a\nb"}"#, "headers: X: expected a value without control characters or surrounding spaces"),
        (
            #""headers":{"Range":"bytes=0-1"}"#,
            "headers: Range: is set by Halcyon to resume transfers and cannot be set by a job"
        ),
        (#""headers":{"a":"1","A":"2"}"#, "headers: A: duplicate field; header names are case-insensitive"),
        (#""variants":[{"headers":{}}]"#, "variants[0].headers: belongs to the job, not to one of its variants"),
    ])
    func rejectsInvalidHeaders(members: String, message: String) throws {
        for isStrict in [true, false] {
            let failure = try #require(rejection(members, by: JobDecoder(isStrict: isStrict))).failure
            #expect(failure.code == .invalidJob && failure.message == message)
        }
    }

    @Test(arguments: [
        #""initials:JD""#, #""file:///a.jpg""#, #""data:,a""#, #""s3://pictures/a.jpg""#, #"{"video":"file:///a.mp4"}"#,
        #"{"video":"s3://pictures/a.mp4"}"#,
    ])
    func rejectsHeadersForNonHTTPSources(source: String) throws {
        let job = #"{"source":\#(source),"headers":{"X":"1"}}"#
        let failure = try #require(rejection(message: job)).failure
        #expect(
            failure.code == .invalidJob
                && failure.message
                    == "headers: supported only for http and https sources"
        )
        #expect(rejection(message: #"{"source":\#(source),"headers":{}}"#) == nil)
    }

    @Test(arguments: [#""HTTP://h/a""#, #""https://h/a""#, #"{"video":"http://h/a.mp4","seconds":1}"#])
    func acceptsHeadersForHTTPSourcesAndVideos(source: String) throws {
        let job = try read(message: #"{"source":\#(source),"headers":{"X":"1"}}"#).job
        #expect(job.request.headers.fields == [.init("x", "1")])
    }

    @Test func keyCoversHeadersThatMayAffectTheResult() throws {
        let keys = try [
            "", #""headers":{"Accept":"a"}"#, #""headers":{"Accept":"b"}"#, #""headers":{"Accept":""}"#,
            #""tenant":"t","headers":{"Accept":"a"}"#,
        ].map { try read($0).keys[0] }
        #expect(Set(keys.map(\.sourceHash)).count == 5 && Set(keys.map(\.variantHash)).count == 1)
        #expect(try read(#""headers":{"ACCEPT":"a","traceparent":"1"}"#).keys[0] == keys[1])
        #expect(try read(#""headers":{"X-Request-ID":"1"}"#).keys[0] == keys[0])
    }
}
