import Glibc
import HalcyonModel
import HostileFiles
import Processes
import TestSupport
import Testing

/// Each hostile file meets the renderer in a process of its own: its memory can be told, and should it crash, the others
/// are still tried.
@Suite(.takesTurns) struct HostileFileTests {
    @Test(arguments: HostileFile.all())
    func endsInTheRightCodeWithinItsLimits(_ file: HostileFile) async throws {
        let report = try await Report(of: file)
        #expect(report.ends.count == HostileFile.jobs.count)
        for (job, end) in report.ends.enumerated() {
            #expect(file.end.allows(end, of: job), "job \(job) ended in \(end): \(report.text)")
        }
        #expect(report.alive == 0)
        // Besides pixels: the program, its libraries, and the file.
        let (limit, most) = (HostileFile.limits.decodedBytes, HostileFile.limits.decodedBytes + 64 << 20)
        if let memory = report.memory { #expect(memory <= most, "\(memory >> 20) MiB") }
        if let memory = report.childMemory {
            #expect(
                memory <= (file.isBoundByChild ? HostileFile.childMemory + 64 << 20 : most),
                "\(memory >> 20) MiB in a child")
        }
        if file.end == .renders { #expect(report.pixels <= limit) }
    }

    @Test func everyFileIsThereOnce() {
        let names = HostileFile.all().map(\.name)
        #expect(Set(names).count == names.count)
        #expect(names.count >= 200)
    }
}

extension HostileFile.End {
    /// Whether a word of the report is among what is right for one of the jobs.
    fileprivate func allows(_ end: String, of job: Int) -> Bool {
        switch self {
        case .renders: end == "renders"
        case .fails(let codes): codes.contains { $0.rawValue == end }
        case .rendersOrFails(let codes): end == "renders" || codes.contains { $0.rawValue == end }
        case .each(let ends): ends.indices.contains(job) && ends[job].allows(end, of: job)
        }
    }
}

/// What `HostileRunner` says of a file.
private struct Report {
    /// All of it.
    var text = ""
    var ends: [String] = []
    /// Peak of the process in bytes; nil under a sanitizer.
    var memory: Int?
    /// Peak of its children; nil under a sanitizer.
    var childMemory: Int?
    /// Peak of libvips' own memory in bytes.
    var pixels = 0
    /// Objects of libvips at the end; nil where the report breaks off.
    var alive: Int?

    init(of file: HostileFile) async throws {
        let folder = TemporaryFolder("hostile")
        let path = folder.path + "/report"
        let output = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        try #require(output >= 0)
        defer { close(output) }
        var options = ChildProcess.Options()
        options.output = .descriptor(output)
        let child = try await ChildProcess.start(BuiltExecutable.path("HostileRunner"), [file.name], options: options)
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
            case "child": childMemory = Int(words[1])
            case "pixels": pixels = Int(words[1]) ?? .max
            case "alive": alive = Int(words[1])
            default: break
            }
        }
    }
}
