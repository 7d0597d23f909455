import HalcyonCoding
import HalcyonModel
import JSON
import TestSupport
import Testing

/// Compares the documentation with the code and the schema.
@Suite struct DocumentationTests {
    static func page(_ name: String) throws -> Markdown { Markdown(try Repository.text("docs/\(name).md")) }

    static func fields() throws -> [[String]] {
        try page("jobs").rows(under: ["field", "type", "default", "example", "meaning"])
    }

    static func schemaProperties() throws -> [String: JSONElement] {
        let schema = try JSON.parse(Repository.bytes("schemas/job.schema.json"), maximumSize: 1 << 20)
        var properties: [String: JSONElement] = [:]
        try #require(schema.member("properties")).forEachMember { name, property throws(JSONError) in
            properties["\(name)"] = property
        }
        return properties
    }

    @Test func documentedEventsMatchEncodedEvents() throws {
        let blocks = try Self.page("events").blocks(of: "json")
        #expect(blocks.count == SampleEvents.documents.count)
        for (block, event) in zip(blocks, SampleEvents.documents) {
            let documented = try JSON.parse(Array(block.utf8), maximumSize: 1 << 16).bytes
            #expect(String(decoding: documented, as: UTF8.self) == String(decoding: event, as: UTF8.self))
        }
    }

    @Test func failureCodesAndRetryabilityAreDocumented() throws {
        let rows = try Self.page("events").rows(under: ["Code", "Meaning", "Retryable by default"])
        let documented = rows.map { "\(Markdown.code(in: $0[0])[0]) \($0[2])" }
        #expect(documented == JobErrorCode.allCases.map { "\($0.rawValue) \($0.isRetryable ? "yes" : "no")" })
    }

    @Test func everyJobFieldIsDocumentedOnce() throws {
        let fields = try Self.fields().flatMap { Markdown.code(in: $0[0]) }
        #expect(fields.sorted() == (try Self.schemaProperties().keys.sorted()))
    }

    @Test func documentedJobsAreValid() async throws {
        let page = try Self.page("jobs")
        var jobs = page.blocks(of: "json")
        for row in try Self.fields() {
            let name = Markdown.code(in: row[0])[0]
            let examples = Markdown.code(in: row[3])
            #expect(!examples.isEmpty, "\(name)")
            jobs += examples.map {
                name == "source"
                    ? #"{"source":\#($0)}"# : #"{"source":"https://example.org/cat.jpg","\#(name)":\#($0)}"#
            }
        }
        for job in jobs { #expect(rejection(message: job, by: JobSchemaTests.strict) == nil, "\(job)") }
        let lines = try jobs.map { try JSON.parse(Array($0.utf8), maximumSize: 1 << 16).bytes }
        for (job, verdict) in zip(jobs, try await Python.validate(lines, against: JobSchemaTests.schema)) {
            #expect(verdict.isValid, "\(job): \(verdict)")
        }
    }

    @Test func documentedDefaultsMatchTheSchema() throws {
        let properties = try Self.schemaProperties()
        for row in try Self.fields() {
            let name = Markdown.code(in: row[0])[0]
            let schema = properties[name]?.member("default").map { String(decoding: $0.bytes, as: UTF8.self) }
            guard name != "cropRect" else { continue }  // "the whole image" in the docs
            #expect(Markdown.code(in: row[2]).first == schema, "\(name)")
        }
    }

    @Test func schemaDefaultsDecodeLikeAbsentFields() throws {
        let plain = try read(#""width":4,"height":3"#)
        for (name, property) in try Self.schemaProperties() {
            guard let value = property.member("default") else { continue }
            let job = try read(#""width":4,"height":3,"\#(name)":\#(String(decoding: value.bytes, as: UTF8.self))"#)
            #expect(job.variant == plain.variant && job.maxAge == plain.maxAge, "\(name)")
            #expect(job.cache == plain.cache && job.request == plain.request && job.tags == plain.tags, "\(name)")
            #expect(job.delivery == plain.delivery && job.deadline == plain.deadline, "\(name)")
        }
    }

    @Test func decoderAcceptsSchemaExamples() throws {
        let schema = try JSON.parse(Repository.bytes("schemas/job.schema.json"), maximumSize: 1 << 20)
        var jobs: [String] = []
        try #require(schema.member("examples")).forEachElement {
            jobs.append(String(decoding: $0.bytes, as: UTF8.self))
        }
        for (name, property) in try Self.schemaProperties() {
            try property.member("examples")?.forEachElement {
                let value = String(decoding: $0.bytes, as: UTF8.self)
                let source = name == "source" ? "" : #""source":"http://h/a","#
                jobs.append(#"{\#(source)"\#(name)":\#(value)}"#)
            }
        }
        #expect(jobs.count >= 25)
        for job in jobs { #expect(rejection(message: job, by: JobSchemaTests.strict) == nil, "\(job)") }
    }

    @Test func documentedKeysMatchComputedKeys() throws {
        let blocks = try Self.page("keys").blocks(of: "")
        let first = try #require(KeyVectorTests.publishedVectors().first { $0.name == "width and height" })
        #expect(blocks.contains { $0.hasPrefix(first.texts.keys[0] + "\n") })
        #expect(blocks.contains(String(first.texts.source.dropLast())))
        let job = try read(
            """
            "width":400,"height":300,"screenScale":2,"contentMode":"contain","scaleOptions":"fitCropsExcess",\
            "cropRect":{"x":0.5,"y":0,"width":0.5,"height":1},"format":"webp","quality":80
            """)
        #expect(blocks.contains(String(job.variant.canonicalText.dropLast())))
        let avatar = try read(
            message: """
                {"source":"initials:JD","width":96,"height":96,"screenScale":2,"gravity":{"x":0.3,"y":0.25},\
                "processors":[{"roundCorner":{"radius":12,"background":"white"}},{"colorControls":{"contrast":1.2}}]}
                """
        ).job
        #expect(blocks.contains(String(avatar.variant.canonicalText.dropLast())))
        #expect(blocks.contains(String(avatar.request.canonicalText.dropLast())))
    }
}
