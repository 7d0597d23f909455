import HalcyonCoding
import HalcyonModel
import JSON
import TestSupport
import Testing

/// Compares `schemas/event.schema.json` with the encoder.
@Suite(.limitedParallelism) struct EventSchemaTests {
    static let schema = Repository.path("schemas/event.schema.json")

    @Test func randomEventsConformToTheSchema() async throws {
        var random = RandomEvents(seed: 1)
        let events = (0..<1500).map { _ in random.json() }
        for (event, verdict) in zip(events, try await Python.validate(events, against: Self.schema)) {
            #expect(verdict.isValid, "\(String(decoding: event, as: UTF8.self))\n\(verdict)")
        }
    }

    /// The published schema allows unknown members for later versions. This version writes none.
    @Test func schemaNamesEveryMember() async throws {
        let closed = try Repository.text("schemas/event.schema.json")
            .replacing(#""additionalProperties": true"#, with: #""additionalProperties": false"#)
        let folder = TemporaryFolder("event-schema")
        let path = folder.write(closed.utf8, to: "closed.json")
        var random = RandomEvents(seed: 2)
        let extended = String(decoding: SampleEvents.ready.json, as: UTF8.self)
            .replacing(#""origin":"#, with: #""extra":1,"origin":"#)
        let events = (0..<500).map { _ in random.json() } + [Array(extended.utf8)]
        let verdicts = try await Python.validate(events, against: path)
        await folder.remove()
        for (event, verdict) in zip(events, verdicts).dropLast() {
            #expect(verdict.isValid, "\(String(decoding: event, as: UTF8.self))\n\(verdict)")
        }
        #expect(verdicts.last?.isValid == false)
        #expect(try await Python.validate([Array(extended.utf8)], against: Self.schema)[0].isValid)
    }

    /// Invalid events: a part of a valid event, and its replacement.
    static let faults: [(event: any EncodedEvent, piece: String, fault: String)] = [
        (SampleEvents.ready, #""specversion":"1.0""#, #""specversion":"0.3""#),
        (SampleEvents.ready, #""source":"/halcyon","#, ""),
        (SampleEvents.ready, "halcyon.image.ready\"", "halcyon.image.done\""),
        (SampleEvents.ready, "halcyon.image.ready\"", "halcyon.image.failed\""),
        (SampleEvents.ready, "395Z", "395"),
        (SampleEvents.ready, "-b7ad6b7169203331", ""),
        (SampleEvents.ready, #""width":400,"#, #""width":0,"#),
        (SampleEvents.ready, #""width":400,"#, #""width":400.5,"#),
        (SampleEvents.ready, #""format":"jpeg","bytes":23481"#, #""format":"heic","bytes":23481"#),
        (SampleEvents.ready, ":fdbc61c3", ":gdbc61c3"),
        (SampleEvents.ready, #""origin":"network""#, #""origin":"cache""#),
        (SampleEvents.ready, #""status":200"#, #""status":"200""#),
        (SampleEvents.ready, #""fetch":91.62"#, #""fetch":-1"#),
        (SampleEvents.ready, #""job":{"id":"article-17-hero","#, #""job":{"#),
        (SampleEvents.failed, #""code":"not_found""#, #""code":"lost""#),
        (SampleEvents.failed, #""retryable":false,"#, ""),
        (SampleEvents.failed, #""attempts":1"#, #""attempts":-1"#),
        (SampleEvents.started, #""data":{"job":{"#, #""data":{"jobs":{"#),
        (SampleEvents.progress, #""stage":"fetch""#, #""stage":"nap""#),
        (SampleEvents.progress, #""received":524288"#, #""received":-1"#),
        (SampleEvents.progress, #","attempt":1"#, ""),
        (SampleEvents.cancelled, #""data":{"job":{"#, #""data":{"jobs":{"#),
        (SampleEvents.superseded, #","supersededBy":1795257067290"#, ""),
        (SampleEvents.superseded, "1795257067290", "-1"),
        (SampleEvents.purged, #""count":5"#, #""count":-5"#),
        (SampleEvents.purged, #","count":5"#, ""),
        (SampleEvents.purged, #""cacheTags":["#, #""cacheTags":["a b","#),
        (SampleEvents.purged, #""source-3fa1"#, #""source,3fa1"#),
        (SampleEvents.purged, #""tenant":"#, #""tag":"#),
        (SampleEvents.purged, #""source":"https://example.org/cat.jpg","tenant":"shop-7","#, ""),
        (SampleEvents.batchProgress, "halcyon.batch.progress", "halcyon.batch.started"),
        (SampleEvents.batchProgress, #""id":"summer-catalogue","#, #""id":"summer catalogue","#),
        (SampleEvents.batchProgress, #""state":"running""#, #""state":"asleep""#),
        (SampleEvents.batchProgress, #""total":20000"#, #""total":10000001"#),
        (SampleEvents.batchProgress, #""superseded":0"#, #""succeeded":0"#),
        (SampleEvents.batchCompleted, #""ready":19993"#, #""ready":-1"#),
        (SampleEvents.batchCompleted, #""data":{"batch":{"#, #""data":{"job":{"#),
    ]

    @Test func schemaRejectsInvalidEvents() async throws {
        let events = try Self.faults.map { fault in
            let text = String(decoding: fault.event.json, as: UTF8.self)
            try #require(text.contains(fault.piece), "\(text)")
            return Array(text.replacing(fault.piece, with: fault.fault).utf8)
        }
        for (fault, verdict) in zip(Self.faults, try await Python.validate(events, against: Self.schema)) {
            #expect(!verdict.isValid, "\(fault.piece) as \(fault.fault)")
        }
    }

    @Test func schemaListsEveryCodeAndFormat() throws {
        let definitions = try #require(
            JSON.parse(Repository.bytes("schemas/event.schema.json"), maximumSize: 1 << 20).member("$defs"))
        func words(_ schema: JSONElement?) throws -> [String] {
            var words: [String] = []
            try #require(schema?.member("enum")).forEachElement { word throws(JSONError) in
                words.append(try word.string())
            }
            return words
        }
        #expect(try words(definitions.member("code")) == JobErrorCode.allCases.map(\.rawValue))
        let sourceFormat = definitions.member("source")?.member("properties")?.member("format")
        let sourceFormats = ImageFormat.allCases.filter { $0 != .json }.map(\.rawValue)
        #expect(try words(sourceFormat) == sourceFormats)
        let infoFormat = definitions.member("info")?.member("properties")?.member("format")
        #expect(try words(infoFormat) == sourceFormats)
        let outputFormat = definitions.member("variant")?.member("properties")?.member("format")
        #expect(try words(outputFormat) == (ImageFormat.writable + [.json]).map(\.rawValue))
        let types = Event.Kind.allCases.map { Event.typePrefix + $0.rawValue }
        #expect(Set(SampleEvents.all.map { Event.typePrefix + $0.kind.rawValue }) == Set(types))
        let root = try JSON.parse(Repository.bytes("schemas/event.schema.json"), maximumSize: 1 << 20)
        let batchTypes = BatchEvent.Kind.allCases.map { BatchEvent.typePrefix + $0.rawValue }
        #expect(try Set(words(root.member("properties")?.member("type"))) == Set(types + batchTypes))
        let state = definitions.member("batch")?.member("properties")?.member("state")
        #expect(try words(state) == Batch.State.allCases.map(\.rawValue))
    }
}

/// An event with its JSON.
protocol EncodedEvent: Sendable {
    var json: [UInt8] { get }
}

extension Event: EncodedEvent {}
extension BatchEvent: EncodedEvent {}
