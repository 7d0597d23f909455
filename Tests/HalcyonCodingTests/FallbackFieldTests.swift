import HalcyonCoding
import HalcyonModel
import Testing

/// The alternative sources and the fallback picture of jobs.
@Suite struct FallbackFieldTests {
    private static let mirror = "https://mirror.example.org/cat.jpg"
    private static let put = #""delivery":{"put":"https://bucket.example.org/a"}"#

    private static let reader: JobDecoder = {
        var reader = JobDecoder(isStrict: true)
        reader.fallback = .initials(try! Initials("S"))
        return reader
    }()

    @Test func alternativesAreSources() throws {
        let job = try read(#""alternatives":["\#(Self.mirror)",{"initials":"JD"}]"#) as Job
        #expect(job.alternatives == [.web(try WebURL(Self.mirror)), .initials(try Initials("JD"))])
        #expect((try read(#""alternatives":null"#) as Job).alternatives.isEmpty)
    }

    @Test func aFallbackComesFromTheJobOrTheSettings() throws {
        func fallback(_ members: String) throws -> String? {
            (try read(members, by: Self.reader) as Job).fallback?.text
        }
        #expect(try fallback("") == "initials:S")
        #expect(try fallback(#""fallback":null"#) == "initials:S")
        #expect(try fallback(#""fallback":false"#) == nil)
        #expect(try fallback(#""fallback":"\#(Self.mirror)""#) == Self.mirror)
        #expect(try fallback(Self.put) == nil)
        #expect(try fallback(#"\#(Self.put),"fallback":false"#) == nil)
        #expect((try read("") as Job).fallback == nil)
    }

    @Test(arguments: [
        (#""alternatives":["cat.jpg"]"#, "alternatives[0]: expected an absolute URL"),
        (#""alternatives":"https://h/""#, "alternatives: expected an array"),
        (
            #""alternatives":["http://h","http://h","http://h","http://h","http://h","http://h","http://h","http://h",1]"#,
            "at most 8 are allowed"
        ),
        (#""fallback":true"#, "fallback: expected a source, or false for no fallback picture"),
        (#""fallback":"ftp://h/a""#, "fallback: no provider for ftp: URLs"),
        (#"\#(put),"fallback":"http://h/""#, "fallback: excludes delivery by put"),
        (#""variants":[{"fallback":false}]"#, "variants[0].fallback: belongs to the job"),
    ]) func refused(members: String, message: String) {
        #expect(
            rejection(members)?.failure.message.contains(message) == true, "\(String(describing: rejection(members)))")
    }

    /// Header fields may be credentials.
    @Test(arguments: [
        ("https://example.org:443/b", true), ("https://example.org/b", true), ("http://example.org/b", false),
        ("https://example.org:8443/b", false), ("https://img.example.org/b", false), ("initials:JD", false),
    ]) func headersStayWithTheOrigin(other: String, isKept: Bool) throws {
        let job = try read(#""headers":{"Authorization":"Bearer x"}"#) as Job
        let source = try JobDecoder().source(other)
        #expect(job.using(source).headers.isEmpty == !isKept && job.using(source).source == source)
        let drawn = try read(message: #"{"source":"initials:JD","alternatives":["\#(other)"]}"#).job
        #expect(drawn.using(source).headers.isEmpty)
    }
}
