import Foundation
import HalcyonKit
import HalcyonModel
import TestSupport
import Testing

/// Decoding of events, including those in docs/events.md.
@Suite struct ImageEventTests {
    private static let documented: [ImageEvent] = {
        let text = try! Repository.text("docs/events.md")
        return text.components(separatedBy: "```json\n").dropFirst().compactMap { block in
            let json = block.components(separatedBy: "```")[0]
            return json.contains("specversion")
                ? try! JSONDecoder().decode(ImageEvent.self, from: Data(json.utf8)) : nil
        }
    }()

    @Test func decodesEveryDocumentedType() throws {
        var seen: Set<String> = []
        for event in Self.documented {
            switch event.kind {
            case .started: seen.insert("started")
            case .progress(let progress):
                seen.insert("progress")
                #expect(progress.stage == "fetch" && progress.received < progress.total ?? 0 && progress.attempt == 1)
            case .ready(let ready):
                seen.insert("ready")
                #expect(!ready.variants.isEmpty && ready.timings["total"] != nil)
                #expect(ready.variants[0].expiresAt != nil)
            case .failed: seen.insert("failed")
            case .cancelled: seen.insert("cancelled")
            case .superseded: seen.insert("superseded")
            case .purged: seen.insert("purged")
            case .batchProgress: seen.insert("batch.progress")
            case .batchCompleted(let batch):
                seen.insert("batch.completed")
                #expect(batch.state == .completed && batch.ended == batch.total)
            case .other(let type): Issue.record("\(type) is unknown")
            }
            let hasJob =
                switch event.kind {
                case .purged, .batchProgress, .batchCompleted, .other: false
                default: true
                }
            #expect((event.job != nil) == hasJob)
        }
        #expect(
            seen == [
                "started", "progress", "ready", "failed", "cancelled", "superseded", "purged", "batch.progress",
                "batch.completed",
            ])
    }

    @Test func decodesUnknownTypes() throws {
        let json =
            #"{"id": "1", "type": "halcyon.image.later", "time": "2026-11-21T10:31:07.250Z", "data": {"x": 1}}"#
        let event = try JSONDecoder().decode(ImageEvent.self, from: Data(json.utf8))
        #expect(event.kind == .other("halcyon.image.later") && event.job == nil)
        #expect(event.time == Date(timeIntervalSince1970: 1_795_257_067.25))
    }

    @Test func decodesDatesWithAnyDecoderStrategy() throws {
        let json = Data(
            #"{"id": "1", "type": "halcyon.image.later", "time": "2026-11-21T10:31:07Z", "data": {}}"#.utf8)
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .secondsSince1970
        for decoder in [decoder, JSONDecoder()] {
            let time = try decoder.decode(ImageEvent.self, from: json).time
            #expect(time == Date(timeIntervalSince1970: 1_795_257_067))
        }
    }

    @Test func keepsUnknownValues() throws {
        let ready = try JSONDecoder().decode(
            ImageEvent.Ready.self,
            from: Data(
                #"""
                {"job": {"id": "1"}, "origin": "edge", "timings": {"upload": 2}, "failures":
                [{"variant": 1, "code": "bad_moon", "message": "m"}], "variants": [{"key": "k", "width": 1, "height": 2,
                "format": "jxr", "bytes": 3, "sha256": "0", "quality": 7}]}
                """#.utf8))
        #expect(ready.cacheStatus.rawValue == "edge" && ready.timings == ["upload": 2])
        #expect(ready.variants[0].format.rawValue == "jxr" && ready.variants[0].expiresAt == nil)
        #expect(ready.failures[0].code == HalcyonKit.FailureCode(rawValue: "bad_moon"))
    }

    @Test func uploadedVariantsHaveNameAndAddress() throws {
        let variant = try JSONDecoder().decode(
            ImageEvent.Variant.self,
            from: Data(
                #"""
                {"key": "k", "name": "small", "width": 1, "height": 2, "format": "jpeg", "bytes": 3, "sha256": "0",
                "put": "https://bucket.example.org/items/7/small.jpeg"}
                """#.utf8))
        #expect(variant.name == "small" && variant.put == "https://bucket.example.org/items/7/small.jpeg")
    }

    @Test func valuesMatchTheModel() {
        let codes: [HalcyonKit.FailureCode] = [
            .invalidJob, .expired, .poison, .unsupportedSource, .blockedAddress, .notFound, .gone, .forbidden,
            .httpError, .dnsError, .connectError, .originUnavailable, .tlsError, .timeout, .tooManyRedirects,
            .providerError, .tooLarge, .tooManyPixels, .unsupportedFormat, .corruptImage, .internal,
        ]
        #expect(codes.map(\.rawValue).sorted() == HalcyonModel.JobErrorCode.allCases.map(\.rawValue).sorted())
        let statuses: [ImageEvent.Ready.CacheStatus] = [.memory, .store, .sourceCache, .network, .coalesced]
        #expect(statuses.map(\.rawValue).sorted() == CacheStatus.allCases.map(\.rawValue).sorted())
        let types: [EventStream.Filter.EventType] = [
            .started, .progress, .ready, .failed, .cancelled, .superseded, .purged,
        ]
        #expect(types.map(\.rawValue) == Event.Kind.allCases.map(\.rawValue))
    }
}
