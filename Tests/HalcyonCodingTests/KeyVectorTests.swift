import HalcyonCoding
import HalcyonModel
import JSON
import TestSupport
import Testing

/// Compares keys with those of the reference implementation in Python.
@Suite(.limitedParallelism) struct KeyVectorTests {
    struct Texts: Equatable {
        let source: String
        let variants: [String]
        let keys: [String]

        init(of job: Job) {
            source = job.request.canonicalText
            variants = job.variants.map(\.canonicalText)
            keys = job.keys.map(\.description)
        }

        init(_ json: JSONElement) throws {
            source = try #require(json.member("sourceText")).string()
            variants = try Self.list(json.member("variantTexts"))
            keys = try Self.list(json.member("keys"))
        }

        private static func list(_ json: JSONElement?) throws -> [String] {
            var texts: [String] = []
            try #require(json).forEachElement { text throws(JSONError) in texts.append(try text.string()) }
            return texts
        }
    }

    static func publishedVectors() throws -> [(name: String, job: [UInt8], texts: Texts)] {
        let file = try JSON.parse(Repository.bytes("schemas/key-vectors.json"), maximumSize: 1 << 20)
        var vectors: [(String, [UInt8], Texts)] = []
        try #require(file.member("vectors")).forEachElement { vector throws(JSONError) in
            do {
                let name = try #require(vector.member("name")).string()
                vectors.append((name, try #require(vector.member("job")).bytes, try Texts(vector)))
            } catch {
                throw JSONError(.invalid, "\(error)")
            }
        }
        return vectors
    }

    static func textsByPython(of jobs: [[UInt8]]) async throws -> [Texts] {
        try await Python.run("keys.py", ["--texts"], over: jobs).map {
            try Texts(JSON.parse(Array($0.utf8), maximumSize: 1 << 20))
        }
    }

    @Test func matchesPublishedVectors() throws {
        let vectors = try Self.publishedVectors()
        #expect(vectors.count >= 123)
        for vector in vectors {
            let job = try JobDecoder(isStrict: true).read(vector.job, defaultID: "0-0-0").job
            #expect(Texts(of: job) == vector.texts, "\(vector.name)")
        }
    }

    @Test func pythonMatchesPublishedVectors() async throws {
        let vectors = try Self.publishedVectors()
        let texts = try await Self.textsByPython(of: vectors.map(\.job))
        for (vector, texts) in zip(vectors, texts) { #expect(texts == vector.texts, "\(vector.name)") }
    }

    @Test func randomJobsHaveTheSameKeysInPython() async throws {
        var random = RandomJobs(seed: 2)
        let reader = JobSchemaTests.withPresets(JobDecoder())
        let jobs = (0..<3000).compactMap { index -> (bytes: [UInt8], job: Job)? in
            let bytes = index % 4 == 0 ? random.mutated() : random.plausible()
            return (try? reader.read(bytes, defaultID: "0-0-0")).map { (bytes, $0.job) }
        }
        #expect(jobs.count >= 1000)
        let texts = try await Self.textsByPython(of: jobs.map(\.bytes))
        for (job, texts) in zip(jobs, texts) {
            #expect(Texts(of: job.job) == texts, "\(String(decoding: job.bytes, as: UTF8.self))")
        }
        #expect(Set(texts.flatMap(\.keys)).count > jobs.count / 2)
    }
}
