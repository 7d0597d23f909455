import Glibc
import HalcyonModel
import MalformedImages
import Subprocess
import TestSupport
import Testing

/// Each malformed file is rendered in its own process, so that its memory can be measured and a crash does not stop the
/// other files.
@Suite(.limitedParallelism) struct MalformedImageTests {
    @Test(.extended, arguments: MalformedImage.all())
    func endsAsExpectedWithinItsLimits(_ file: MalformedImage) async throws {
        let report = try await Report(of: file)
        #expect(report.ends.count == MalformedImage.jobs.count)
        for (job, end) in report.ends.enumerated() {
            #expect(file.end.allows(end, of: job), "job \(job) ended in \(end): \(report.text)")
        }
        #expect(report.alive == 0)
        // Memory besides pixels: the program, its libraries, and the file.
        let (limit, most) = (MalformedImage.limits.decodedBytes, MalformedImage.limits.decodedBytes + 64 << 20)
        if let memory = report.memory { #expect(memory <= most, "\(memory >> 20) MiB") }
        if let memory = report.renderProcessMemory {
            #expect(
                memory <= (file.isBoundByChild ? MalformedImage.renderProcessMemory + 64 << 20 : most),
                "\(memory >> 20) MiB in a child")
        }
        if file.end == .renders { #expect(report.pixels <= limit) }
    }

    @Test func fileNamesAreUnique() {
        let names = MalformedImage.all().map(\.name)
        #expect(Set(names).count == names.count)
        #expect(names.count >= 200)
    }
}

extension MalformedImage.End {
    /// Whether an outcome in the report is allowed for a job.
    fileprivate func allows(_ end: String, of job: Int) -> Bool {
        switch self {
        case .renders: end == "renders"
        case .fails(let codes): codes.contains { $0.rawValue == end }
        case .rendersOrFails(let codes): end == "renders" || codes.contains { $0.rawValue == end }
        case .each(let ends): ends.indices.contains(job) && ends[job].allows(end, of: job)
        }
    }
}

/// The output of `MalformedImageRunner` for a file.
private struct Report {
    /// The whole output.
    var text = ""
    var ends: [String] = []
    /// Peak memory of the process in bytes. nil under a sanitizer.
    var memory: Int?
    /// Peak memory of its children in bytes. nil under a sanitizer.
    var renderProcessMemory: Int?
    /// Peak of libvips' own memory in bytes.
    var pixels = 0
    /// Live objects of libvips at the end. nil if the output is incomplete.
    var alive: Int?

    init(of file: MalformedImage) async throws {
        let folder = TemporaryFolder("hostile")
        let path = folder.path + "/report"
        let output = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        try #require(output >= 0)
        defer { close(output) }
        var options = ChildProcess.Options()
        options.output = .descriptor(output)
        let child = try await ChildProcess.start(
            BuiltExecutable.path("MalformedImageRunner"), [file.name], options: options)
        let exit = await child.exit()
        #expect(exit == .code(0))

        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = pread(output, &bytes, bytes.count, 0)
        await folder.remove()
        text = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            guard words.count >= 2 else { continue }
            switch words[0] {
            case "end": ends.append(words[1])
            case "memory": memory = Int(words[1])
            case "child": renderProcessMemory = Int(words[1])
            case "pixels": pixels = Int(words[1]) ?? .max
            case "alive": alive = Int(words[1])
            default: break
            }
        }
    }
}
