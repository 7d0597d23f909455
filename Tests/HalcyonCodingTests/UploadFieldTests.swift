import HalcyonCoding
import HalcyonModel
import Testing

/// The upload URLs of jobs with several variants, and the names of variants.
@Suite struct UploadFieldTests {
    private static let variants = #""variants":[{"name":"small","width":4},{"width":8},{"name":"large"}]"#

    private func put(_ json: String, _ members: String = variants) throws -> UploadTargets? {
        guard case .put(let targets) = try read(#"\#(members),"delivery":{"put":\#(json)}"#).delivery else {
            return nil
        }
        return targets
    }

    @Test func variantsHaveNames() throws {
        let job = try read(Self.variants) as Job
        #expect(job.names == ["small", nil, "large"] && job.labels == ["small", "1", "large"])
        #expect(job.name(ofVariant: 0) == "small" && job.name(ofVariant: 1) == nil && job.name(ofVariant: 9) == nil)
        let unnamed = try read(#""variants":[{},{"name":null}]"#) as Job
        #expect(unnamed.names.isEmpty && unnamed.labels == ["0", "1"])
        // The name is not part of the key.
        #expect(job.variants[0] == (try read(#""variants":[{"width":4}]"#) as Job).variants[0])
    }

    @Test func aTemplateSuitsAnyNumberOfVariants() throws {
        let text = "https://bucket.example.org/items/7/{variant}.{format}"
        for variants in [Self.variants, #""width":4"#] {
            #expect(try put("\"\(text)\"", variants) == .template(try UploadTemplate(text)))
        }
    }

    @Test func eachVariantHasItsURL() throws {
        let urls = ["https://h/s?sig=1", "https://h/1?sig=2", "https://other:8443/l"]
        let found = try put(#"{"large":"\#(urls[2])","1":"\#(urls[1])","small":"\#(urls[0])"}"#)
        #expect(found == .urls(try urls.map { try WebURL($0) }))
        #expect(try put(#"{"0":"https://h/a"}"#, #""width":4"#) == .urls([try WebURL("https://h/a")]))
    }

    @Test(arguments: [
        (#"{"small":"https://h/s","1":"https://h/1"}"#, "delivery.put: no URL for the variant large"),
        ("{}", "delivery.put: no URL for the variant small"),
        (
            #"{"small":"https://h/s","1":"https://h/1","large":"https://h/l","lrge":"https://h/x"}"#,
            "delivery.put.lrge: the job has no such variant; expected small, 1, large"
        ),
        (
            #"{"small":"https://h/s","1":"https://h/1","0":"https://h/0","large":"https://h/l"}"#,
            "delivery.put.0: the job has no such variant; expected small, 1, large"
        ),
        (
            #"{"small":"https://h/s","1":"https://h/1","large":"HTTPS://H:443/s#2"}"#,
            "delivery.put.large: same URL as that of the variant small"
        ),
        (
            #"{"small":"https://h/s","small":"https://h/1"}"#, "delivery.put.small: duplicate name"
        ),
        (
            #"{"small":"https://h/s3cr3t/{index}\#(String(repeating: "x", count: 8200))"}"#,
            "delivery.put.small: expected an http or https URL of at most 8192 bytes"
        ),
        (#"{"small":["https://h/s"]}"#, "delivery.put.small: expected a string, found an array"),
        (#"["https://h/s"]"#, "delivery.put: expected a string, found an array"),
        (
            #""https://h/{varient}""#,
            "delivery.put: unknown placeholder {varient}; expected one of {variant}, {index}, {width}, {height}, "
                + "{format}, {key}"
        ),
        (#""https://h/{variant""#, "delivery.put: a { without a }"),
        (#""https://h/variant}""#, "delivery.put: a } without a {"),
        (#""https://{variant}.h/""#, "delivery.put: placeholders are allowed only in the path and the query"),
        (#""https://{variant}@h/""#, "delivery.put: placeholders are allowed only in the path and the query"),
        (#""https://h{index}""#, "delivery.put: placeholders are allowed only in the path and the query"),
        (#""https://h:8{index}/""#, "delivery.put: placeholders are allowed only in the path and the query"),
        (#""{variant}://h/""#, "delivery.put: placeholders are allowed only in the path and the query"),
        (#""https://h/a#{variant}""#, "delivery.put: placeholders are allowed only in the path and the query"),
        (#""ftp://h/{variant}""#, "delivery.put: expected an http or https URL"),
        (#""https://h/s3cr3t /{variant}""#, "delivery.put: expected an http or https URL"),
        (
            #""https://h/s3cr3t""#,
            "delivery.put: one URL for 3 variants; add a placeholder such as {variant}, or give each variant a URL: "
                + #"{"small": URL, …}"#
        ),
        (
            #""https://h/{variant}\#(String(repeating: "x", count: 8192))""#,
            "delivery.put: the template is longer than 8192 bytes"
        ),
    ])
    func rejectsInvalidTargets(json: String, message: String) throws {
        let failure = try #require(rejection(#"\#(Self.variants),"delivery":{"put":\#(json)}"#)).failure
        #expect(failure.code == .invalidJob && failure.message.hasPrefix(message), "\(failure.message)")
        #expect(!failure.message.contains("s3cr3t"))
    }

    @Test(arguments: [
        (#"{"name":"a"},{"name":"a"}"#, "variants[1].name: another variant has this name, or this index and no name"),
        (#"{},{"name":"0"}"#, "variants[1].name: another variant has this name, or this index and no name"),
        (#"{"name":""}"#, "variants[0].name: expected 1 to 64 letters"),
        (#"{"name":".."}"#, "variants[0].name: expected 1 to 64 letters"),
        (#"{"name":"a/b"}"#, "variants[0].name: expected 1 to 64 letters"),
        (#"{"name":7}"#, "variants[0].name: expected a string, found a number"),
    ])
    func rejectsInvalidNames(variants: String, message: String) throws {
        let failure = try #require(rejection(#""variants":[\#(variants)]"#)).failure
        #expect(failure.code == .invalidJob && failure.message.hasPrefix(message), "\(failure.message)")
    }

    @Test func eventsContainNameAndAddress() throws {
        guard case .ready(var ready) = SampleEvents.ready.body else { return }
        #expect(!String(decoding: SampleEvents.ready.json, as: UTF8.self).contains(#""put""#))
        (ready.results[0].name, ready.results[0].uploadedTo) = ("small", "https://h/small.jpeg")
        var event = SampleEvents.ready
        event.body = .ready(ready)
        guard case .ready(let outputs, _) = DecodedEvent(json: event.json)?.ending else {
            Issue.record("the event is not ready")
            return
        }
        #expect(outputs[0].name == "small" && outputs[0].uploadedTo == "https://h/small.jpeg")
    }

    @Test func nameIsUnknownOutsideVariants() throws {
        #expect(try read(message: #"{"source":"http://h/a","name":"a"}"#, by: JobDecoder()).unknownFields == ["name"])
    }
}
