import FoundationEssentials
import Glibc
import HalcyonModel

/// What becomes of a process: `{"how": "abort", "notes": "/file"}`.
struct Death: Decodable {
    enum How: String, Decodable {
        case abort, segv
        /// It burns a processor, and hears nothing.
        case spin
        /// It sleeps, and hears nothing.
        case hang
        /// It takes three seconds and does no harm.
        case slow
    }

    let how: How
    /// A file to which a line is added.
    let notes: String
    /// Only where Halcyon takes jobs, and not in its children.
    var onlyInWorkers: Bool?

    init(_ parameters: String) throws(JobError) {
        do {
            self = try JSONDecoder().decode(Death.self, from: Data(parameters.utf8))
        } catch {
            throw JobError(.invalidJob, "\(error)")
        }
    }

    /// Comes back only where it is told to do no harm.
    func happen() {
        let isChild = CommandLine.arguments.dropFirst().first == "render-child"
        let descriptor = open(notes, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        let line = isChild ? "child\n" : "worker\n"
        _ = write(descriptor, line, line.utf8.count)
        close(descriptor)
        if isChild, onlyInWorkers == true { return }
        switch how {
        case .abort: Glibc.abort()
        case .segv: kill(getpid(), SIGSEGV)
        case .spin: while getppid() >= 0 {}
        case .hang: while true { sleep(1000) }
        case .slow: sleep(3)
        }
    }
}
