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
        for end in report.ends { #expect(file.end.allows(end), "ended in \(end)") }
        #expect(report.ends.count == Report.jobs)
        #expect(report.alive == 0)
        if let memory = report.memory {
            // Besides pixels: the program, its libraries, and the file.
            #expect(memory <= HostileFile.limits.decodedBytes + 64 << 20, "\(memory >> 20) MiB")
        }
        if file.end == .renders { #expect(report.pixels <= HostileFile.limits.decodedBytes) }
    }

    @Test(arguments: HostileFile.overweight())
    func isNotYetHeldWithinItsLimits(_ file: HostileFile) async throws {
        let report = try await Report(of: file)
        for end in report.ends { #expect(file.end.allows(end), "ended in \(end)") }
        #expect(report.alive == 0)
        guard let memory = report.memory else { return }
        withKnownIssue("libheif believes the size that the pixels say", isIntermittent: true) {
            #expect(memory <= HostileFile.limits.decodedBytes + 64 << 20, "\(memory >> 20) MiB")
        }
    }

    @Test func everyFileIsThereOnce() {
        let names = HostileFile.all().map(\.name)
        #expect(Set(names).count == names.count)
        #expect(names.count >= 90)
    }
}

extension HostileFile.End {
    /// Whether a word of the report is among what is right.
    fileprivate func allows(_ end: String) -> Bool {
        switch self {
        case .renders: end == "renders"
        case .fails(let codes): codes.contains { $0.rawValue == end }
        case .rendersOrFails(let codes): end == "renders" || codes.contains { $0.rawValue == end }
        }
    }
}

/// What `HostileRunner` says of a file.
private struct Report {
    /// How many ways of rendering it tries.
    static let jobs = 4

    var ends: [String] = []
    /// Peak of the process in bytes; nil under a sanitizer.
    var memory: Int?
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

        var text = [UInt8](repeating: 0, count: 4096)
        let count = pread(output, &text, text.count, 0)
        for line in String(decoding: text.prefix(max(0, count)), as: UTF8.self).split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            guard words.count >= 2 else { continue }
            switch words[0] {
            case "end": ends.append(words[1])
            case "memory": memory = Int(words[1])
            case "pixels": pixels = Int(words[1]) ?? .max
            case "alive": alive = Int(words[1])
            default: break
            }
        }
    }
}
