import HalcyonKit
import Testing

/// Types of an app, or of SwiftUI, with the same names as types of the client.
private enum ContentMode { case fit, fill }
private enum Gravity { case earth }
private struct Processor {}
private struct ImageJob { var contentMode = ContentMode.fit }

/// Types of the client next to app types of the same names.
@Suite struct NamesTests {
    @Test func typesCanBeQualified() {
        var job = HalcyonKit.ImageJob("initials:A", width: 8, contentMode: .scaleAspectFit)
        job.output.gravity = .attention
        let (mode, gravity): (HalcyonKit.ImageJob.ContentMode, Gravity) = (.scaleAspectFit, .earth)
        #expect(job.output.contentMode == mode && gravity == .earth)
        #expect(ImageJob().contentMode == ContentMode.fit && Processor.self != HalcyonKit.ImageJob.Processor.self)
    }
}
