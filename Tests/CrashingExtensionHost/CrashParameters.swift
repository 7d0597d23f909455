import FoundationEssentials
import Glibc
import HalcyonModel

/// The parameters of the crashing extensions: `{"mode": "abort", "callLog": "/file"}`.
struct CrashParameters: Decodable {
    /// The behavior of the process.
    enum Mode: String, Decodable {
        case abort, segv
        /// Occupies a processor and ignores cancellation.
        case spin
        /// Sleeps and ignores cancellation.
        case hang
        /// Returns after three seconds.
        case slow
    }

    let mode: Mode
    /// The file to which each call appends a line.
    let callLog: String
    /// True if only workers crash, and not their render processes.
    var onlyInWorkers: Bool?

    init(_ parameters: String) throws(JobError) {
        do {
            self = try JSONDecoder().decode(CrashParameters.self, from: Data(parameters.utf8))
        } catch {
            throw JobError(.invalidJob, "\(error)")
        }
    }

    /// Records the call, and crashes or hangs unless the parameters say otherwise.
    func crash() {
        let isChild = CommandLine.arguments.dropFirst().first == "render-child"
        let descriptor = open(callLog, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        let line = isChild ? "child\n" : "worker\n"
        _ = write(descriptor, line, line.utf8.count)
        close(descriptor)
        if isChild, onlyInWorkers == true { return }
        switch mode {
        case .abort: Glibc.abort()
        case .segv: kill(getpid(), SIGSEGV)
        case .spin: while getppid() >= 0 {}
        case .hang: while true { sleep(1000) }
        case .slow: sleep(3)
        }
    }
}
