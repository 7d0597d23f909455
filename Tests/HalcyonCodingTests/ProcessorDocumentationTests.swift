import HalcyonCoding
import HalcyonModel
import JSON
import TestSupport
import Testing

/// Compares the processors in docs/jobs.md and in the schema with the decoder.
@Suite(.limitedParallelism) struct ProcessorDocumentationTests {
    /// The section of a processor on the page.
    struct Section {
        let name: String
        let examples: [String]
        /// Names, types, defaults, ranges and meanings.
        let parameters: [[String]]
    }

    static func sections() throws -> [Section] {
        let text = try Repository.text("docs/jobs.md")
        return text.components(separatedBy: "\n### `").dropFirst().map { section in
            let page = Markdown(section)
            let examples = section.split(separator: "\n").filter { $0.hasPrefix("- example: ") }
            return Section(
                name: String(section.prefix { $0 != "`" }),
                examples: examples.flatMap { Markdown.code(in: String($0)) },
                parameters: page.rows(under: ["parameter", "type", "default", "range", "meaning"]))
        }
    }

    /// The names that the decoder lists in its error message for an unknown one.
    static func names(after words: String, for processors: String) throws -> [String] {
        let message = try #require(rejection(#""processors":\#(processors)"#)).failure.message
        let list = try #require(message.range(of: words), "\(message)")
        return message[list.upperBound...].components(separatedBy: ", ")
    }

    static func parameters(of processor: String) throws -> [String] {
        let none = "it has none"
        let message = try #require(rejection(#""processors":[{"\#(processor)":{"?":1}}]"#)).failure.message
        return message.hasSuffix(none)
            ? [] : try names(after: "; it has ", for: #"[{"\#(processor)":{"?":1}}]"#)
    }

    static func schemas() throws -> [(name: String, properties: [(name: String, schema: JSONElement)])] {
        let schema = try JSON.parse(Repository.bytes("schemas/job.schema.json"), maximumSize: 1 << 20)
        let processor = try #require(schema.member("$defs")?.member("processor")?.member("oneOf"))
        var found: [(String, [(String, JSONElement)])] = []
        try processor.forEachElement { form throws(JSONError) in
            try form.member("properties")?.forEachMember { name, _ throws(JSONError) in
                var properties: [(String, JSONElement)] = []
                let definition = schema.member("$defs")?.member("\(name)")
                try definition?.member("properties")?.forEachMember { name, schema throws(JSONError) in
                    properties.append(("\(name)", schema))
                }
                found.append(("\(name)", properties))
            }
        }
        return found
    }

    @Test func docsAndSchemaListEveryProcessorAndParameter() throws {
        let known = try Self.names(after: "expected one of ", for: #"[{"????????????":{}}]"#)
        #expect(known.count == 25)
        #expect(try Self.sections().map(\.name) == known)
        #expect(try Self.schemas().map(\.name) == known)
        for section in try Self.sections() {
            let names = try Self.parameters(of: section.name)
            #expect(section.parameters.map { Markdown.code(in: $0[0])[0] } == names, "\(section.name)")
            #expect(try Self.schemas().first { $0.name == section.name }?.properties.map(\.name) == names)
            #expect(!section.examples.isEmpty)
        }
    }

    @Test func documentedExamplesAreValid() async throws {
        var jobs: [[UInt8]] = []
        for example in try Self.sections().flatMap(\.examples) {
            #expect(rejection(#""processors":[\#(example)]"#) == nil, "\(example)")
            jobs.append(Array(#"{"source":"http://h/a","processors":[\#(example)]}"#.utf8))
        }
        for (job, verdict) in zip(jobs, try await Python.validate(jobs, against: JobSchemaTests.schema)) {
            #expect(verdict.isValid, "\(String(decoding: job, as: UTF8.self)): \(verdict)")
        }
    }

    @Test func documentedDefaultsMatchSchemaAndDecoder() throws {
        for section in try Self.sections() {
            let schema = try #require(try Self.schemas().first { $0.name == section.name })
            let example = try #require(section.examples.first)
            for (row, property) in zip(section.parameters, schema.properties) {
                let documented = Markdown.code(in: row[2]).first
                guard row[2] != "all four" else { continue }
                let value = property.schema.member("default").map { String(decoding: $0.bytes, as: UTF8.self) }
                let plain = documented?.replacing(": ", with: ":").replacing(", ", with: ",")
                #expect(plain == value, "\(section.name).\(property.name)")
                // These exclude other parameters, so an example cannot state their defaults.
                let alternatives = ["overlay.opacity", "overlay.mode", "border.radius"]
                guard let value, example.hasPrefix("{"), !example.contains("\"\(property.name)\""),
                    !alternatives.contains("\(section.name).\(property.name)")
                else { continue }
                let explicit = example.replacing(
                    "\": {", with: #"": {"\#(property.name)": \#(value), "#, maxReplacements: 1)
                #expect(
                    try read(#""processors":[\#(explicit)]"#).variant == read(#""processors":[\#(example)]"#).variant)
            }
        }
    }
}
