import Foundation
import HalcyonImaging
import TestSupport
import Testing

@testable import HalcyonCLI

/// The findings of `halcyon doctor` on a detector.
@Suite(.limitedParallelism) struct HostCheckTests {
    private static func finding(_ arguments: [String]) async -> DoctorReport {
        var options = DetectorOptions()
        options.command = arguments
        options.timeLimit = .seconds(60)
        return await HostCheck(fetches: 1, concurrency: 1, memoryLimit: 1).detector(options)
    }

    private static let script = Repository.path("Tests/Detectors/detector.py")

    @Test func detectorIsOptional() async {
        #expect(await Self.finding([]).level == .ok)
    }

    @Test func detectorIsStarted() async {
        let finding = await Self.finding(["python3", Self.script, "photo"])
        #expect(finding.level == .ok && finding.message.contains("finds faces, objects"), "\(finding.message)")
    }

    @Test(arguments: ["dies-first", "other-name", "no-greeting"]) func detectorThatDoesNotStartIsReported(
        mode: String
    ) async {
        let finding = await Self.finding(["python3", Self.script, mode])
        #expect(finding.level == .broken && finding.message.hasPrefix("start: "), "\(finding.message)")
        #expect(finding.remedy?.contains("images.detector") == true)
    }

    @Test func missingProgramIsReported() async {
        let finding = await Self.finding(["/nonexistent/detector"])
        #expect(finding.level == .broken && finding.message.contains("/nonexistent/detector"), "\(finding.message)")
    }
}
