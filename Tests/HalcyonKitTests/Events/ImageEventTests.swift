import Foundation
import Testing

import enum HalcyonModel.FailureCode

@testable import HalcyonKit

/// Events as docs/events.md shows them.
@Suite struct ImageEventTests {
    private static let documented: [ImageEvent] = {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../docs/events.md").standardized
        let text = try! String(contentsOf: file, encoding: .utf8)
        return text.components(separatedBy: "```json\n").dropFirst().compactMap { block in
            let json = block.components(separatedBy: "```")[0]
            return json.contains("specversion")
                ? try! ImageEvent.decoder.decode(ImageEvent.self, from: Data(json.utf8)) : nil
        }
    }()

    @Test func everyTypeIsRead() throws {
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
            case .other(let type): Issue.record("\(type) is not known")
            }
            #expect((event.job == nil) == { if case .purged = event.kind { true } else { false } }())
        }
        #expect(seen == ["started", "progress", "ready", "failed", "cancelled", "superseded", "purged"])
    }

    @Test func aTypeOfALaterVersionIsNoError() throws {
        let json =
            #"{"id": "1", "type": "halcyon.image.later", "time": "2026-11-21T10:31:07.250Z", "data": {"x": 1}}"#
        let event = try ImageEvent.decoder.decode(ImageEvent.self, from: Data(json.utf8))
        #expect(event.kind == .other("halcyon.image.later") && event.job == nil)
        #expect(event.time == Date(timeIntervalSince1970: 1_795_257_067.25))
    }

    @Test func failureCodesAreThoseOfWorkers() {
        #expect(clientFailureCodes.sorted() == FailureCode.allCases.map(\.rawValue).sorted())
    }
}
