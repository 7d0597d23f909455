import Glibc
import HalcyonModel
import Processes

/// A child ended in the middle of a rendering, and nobody had asked it to.
struct ChildDeath: Error {
    let exit: ChildProcess.Exit

    /// Whose fault it is when it happens twice to a picture that has done a worker no harm.
    var failure: Failure {
        switch exit {
        case .signal(SIGSEGV), .signal(SIGBUS), .signal(SIGABRT), .signal(SIGILL), .signal(SIGTRAP), .signal(SIGFPE),
            .signal(SIGSYS):
            Failure(.corruptImage, "a decoder or an encoder crashes on this picture (\(exit))")
        case .signal(SIGXCPU):
            Failure(
                .timeout, "rendering takes more processor time than images.renderTime allows (\(exit))",
                isRetryable: false)
        default:
            // By SIGKILL the kernel ends what takes the last of the memory.
            Failure(.internal, "rendering was ended from outside, twice (\(exit))")
        }
    }
}

extension Failure {
    /// A rendering takes more memory than it could be given.
    init(beyondMemory bytes: Int) {
        self.init(.tooManyPixels, "rendering takes more than the \(bytes >> 20) MiB of memory that it may take")
    }

    /// Whether the libraries say that memory was refused to them. For a child, where nothing else is under way whose words they might be:
    /// there is no other sign that all of them give.
    var isOutOfMemory: Bool {
        (code == .corruptImage || code == .internal) && message.lowercased().contains("memory")
    }
}
