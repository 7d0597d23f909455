import HalcyonCoding
import HalcyonModel
import JSON
import TestSupport
import Testing

/// Compares `schemas/job.schema.json` with the decoder.
@Suite(.limitedParallelism) struct JobSchemaTests {
    static let schema = Repository.path("schemas/job.schema.json")
    /// The schema allows all names of presets and all overrides.
    static let strict = withPresets(JobDecoder(isStrict: true))

    static func withPresets(_ reader: JobDecoder) -> JobDecoder {
        let names =
            (RandomJobs.valid + RandomJobs.edgeCases).map(\.name) + [
                "width", "height", "processors", "variants", "cropRect", "partial",
            ]
        let own = [
            "id", "source", "alternatives", "preset", "slot", "generation", "metadata", "placeholder", "altText",
            "priority",
        ]
        let overridable = Set(names).subtracting(own).sorted().map { "\"\($0)\"" }.joined(separator: ",")
        var reader = reader
        reader.findPreset = { name in
            // Only valid names are looked up.
            try? Preset(
                name, json: Array(#"{"job":{},"overridable":[\#(overridable)],"version":9007199254740992}"#.utf8))
        }
        return reader
    }

    static func rejection(of bytes: [UInt8], by reader: JobDecoder = strict) -> InvalidJobError? {
        do {
            _ = try reader.read(bytes, defaultID: "0-0-0")
            return nil
        } catch {
            return error
        }
    }

    static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes.prefix(600), as: UTF8.self) }

    @Test func schemaAndDecoderAgreeOnRandomJobs() async throws {
        var random = RandomJobs(seed: 1)
        let jobs = (0..<4000).map { $0.isMultiple(of: 4) ? random.plausible() : random.mutated() }
        let verdicts = try await Python.validate(jobs, against: Self.schema)
        var valid = 0
        for (job, verdict) in zip(jobs, verdicts) {
            let failure = Self.rejection(of: job)?.failure
            if let failure, Self.isBeyondTheSchema(failure) { continue }
            #expect(
                (failure == nil) == verdict.isValid, "\(Self.text(job))\n\(verdict)\n\(failure?.message ?? "accepted")")
            if verdict.isValid { valid += 1 }
        }
        // Both verdicts must be common.
        #expect((500...3500).contains(valid))
    }

    @Test func schemaAndDecoderAgreeOnEdgeCases() async throws {
        let fields = RandomJobs.edgeCases + RandomJobs.valid + [("source", RandomJobs.sources)]
        let jobs = fields.flatMap { field in
            (field.values + RandomJobs.anything).map { value -> [UInt8] in
                let source = JSONValue.Member(name: "source", value: "http://h/a")
                let member = JSONValue.Member(name: field.name, value: value)
                return JSONValue.object(field.name == "source" ? [member] : [source, member]).bytes
            }
        }
        for (job, verdict) in zip(jobs, try await Python.validate(jobs, against: Self.schema)) {
            let failure = Self.rejection(of: job)?.failure
            if let failure, Self.isBeyondTheSchema(failure) { continue }
            #expect(
                (failure == nil) == verdict.isValid, "\(Self.text(job))\n\(verdict)\n\(failure?.message ?? "accepted")")
        }
    }

    /// Returns true for rules that the schema cannot express: products of valid fields, color names, grapheme clusters
    /// and contents of encodings.
    static func isBeyondTheSchema(_ failure: JobError) -> Bool {
        [
            "is more than ", "expected a CSS color ", " initials without spaces", "malformed base64", "is not UTF-8",
            "the data is empty", "longer than 1024 bytes", "bytes, and at most 8192 are allowed",
            "duplicate field; header names are", "another variant has this name", "no URL for the variant",
            "the job has no such variant", "same URL as that of the variant",
            "changes the positions of detected faces",
        ].contains {
            failure.message.contains($0)
        }
    }

    /// The rules that the schema's description lists as outside it. The comparison excludes them.
    @Test func decoderEnforcesRulesOutsideTheSchema() async throws {
        let long = String(repeating: "a", count: Job.PassthroughMetadata.longest)
        let jobs: [(message: String, reason: String)] = [
            (#"{"source":"http://h/a","width":65535,"screenScale":4}"#, "width: is more than 65535 pixels"),
            (#"{"source":"http://h/a","metadata":"\#(long)"}"#, "metadata: 16386 bytes"),
            (#"{"source":"http://h/\#(String(repeating: "é", count: 5000))"}"#, "source: longer than 8192 bytes"),
            (
                #"{"source":"http://h/a","tags":["\#(String(repeating: "é", count: 65))"]}"#,
                "tags[0]: expected 1 to 128 bytes"
            ),
            (
                #"{"source":"http://h/a","slot":"\#(String(repeating: "é", count: 129))"}"#,
                "slot: expected 1 to 256 bytes"
            ),
            (#"{"source":"http://h/a","deadline":"2026-02-30T00:00:00Z"}"#, "deadline: expected"),
            (#"{"source":"http://h/a","faces":true,"before":["flip"]}"#, "before[0]: flip changes the positions"),
            (#"{"source":"http://h/a","width":1,"width":2}"#, "width: duplicate name"),
            (#"{"source":"http://h/a","maxAge":18446744073709551616}"#, "the message: has a malformed number"),
            (
                #"{"source":"http://h/a","metadata":\#(String(repeating: "[", count: 33))1\#(String(repeating: "]", count: 33))}"#,
                "the message: arrays and objects are nested too deeply"
            ),
            (
                #"{"source":"http://h/a","id":"a"\#(String(repeating: " ", count: 1 << 20))}"#,
                "the message: 1048608 bytes"
            ),
        ]
        let verdicts = try await Python.validate(jobs.map { Array($0.message.utf8) }, against: Self.schema)
        for (job, verdict) in zip(jobs, verdicts) {
            let message = try #require(Self.rejection(of: Array(job.message.utf8))).failure.message
            #expect(message.hasPrefix(job.reason))
            #expect(verdict.isValid, "\(job.reason): the schema rejects it too: \(verdict)")
        }
    }

    @Test func lenientDecoderDiffersOnlyInUnknownFields() {
        var random = RandomJobs(seed: 3)
        for _ in 0..<2000 {
            let job = random.mutated()
            let strict = Self.rejection(of: job)?.failure.message
            let lenient = Self.rejection(of: job, by: Self.withPresets(JobDecoder()))?.failure.message
            if lenient != strict { #expect(strict?.hasSuffix(": unknown field") == true, "\(Self.text(job))") }
        }
    }

    @Test func schemaListsEveryEnumValue() throws {
        let schema = try JSON.parse(Repository.bytes("schemas/job.schema.json"), maximumSize: 1 << 20)
        func words(_ name: String) throws -> [String] {
            var words: [String] = []
            var property = try #require(schema.member("properties")?.member(name))
            if property.member("$ref") != nil {
                property = try #require(
                    schema.member("$defs")?.member("variant")?.member("properties")?.member(name))
            }
            var lists = [property.member("enum")].compactMap(\.self)
            try property.member("oneOf")?.forEachElement { choice throws(JSONError) in
                if let list = choice.member("enum") { lists.append(list) }
            }
            try #require(lists.first).forEachElement { word throws(JSONError) in
                if !word.isNull { words.append(try word.string()) }
            }
            return words
        }
        #expect(try words("contentMode") == ContentMode.allCases.map(\.rawValue) + ["fill", "contain", "cover"])
        #expect(try words("scaleOptions") == ScaleOptions.allCases.map(\.rawValue))
        #expect(try words("interpolationQuality") == InterpolationQuality.allCases.map(\.rawValue))
        #expect(try words("format") == ["auto", "best"] + ImageFormat.writable.map(\.rawValue))
        #expect(try words("delivery") == Job.Delivery.Word.allCases.map(\.rawValue))
        #expect(try words("priority") == Lane.allCases.map(\.rawValue))
    }
}
