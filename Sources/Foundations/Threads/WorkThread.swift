import CLinux
import Glibc

/// A named pthread that runs one closure and can be joined.
///
/// For C libraries that block or that want all their calls from one thread; never for what an actor can do.
public final class WorkThread: Sendable {
    private let handle: Lock<pthread_t?>

    /// Starts the thread at once.
    /// - Parameters:
    ///   - name: shown by `top -H` and debuggers; the kernel keeps its first 15 bytes.
    ///   - stackSize: bytes; libvips wants at least 1 MiB.
    ///   - body: runs once; the thread ends when it returns.
    public init(name: String, stackSize: Int = 1 << 20, _ body: @escaping @Sendable () -> Void) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, max(stackSize, 1 << 16))

        let start = Unmanaged.passRetained(Start(name: name, body: body))
        var thread = pthread_t()
        let code = pthread_create(&thread, &attributes, runThread, start.toOpaque())
        precondition(code == 0, "cannot start thread \(name): errno \(code)")
        handle = Lock(thread)
    }

    /// Waits until the closure has returned; a second call returns at once. It blocks: never call it on a task's thread.
    public func join() {
        let thread = handle.withLock { held in
            defer { held = nil }
            return held
        }
        if let thread { pthread_join(thread, nil) }
    }

    deinit {
        // Nobody joined: let the system reclaim the thread when it ends.
        if let thread = handle.withLock({ $0 }) { pthread_detach(thread) }
    }
}

private final class Start: Sendable {
    let name: String
    let body: @Sendable () -> Void

    init(name: String, body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }
}

// A plain function: a closure made in isolated code would trap when C calls it on a thread of its own.
private func runThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    let start = Unmanaged<Start>.fromOpaque(context!).takeRetainedValue()
    clinux_name_thread(start.name)
    // C libraries write to sockets whose peer may be gone: that is an error of theirs, not the end of the process.
    var mask = sigset_t()
    sigemptyset(&mask)
    sigaddset(&mask, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &mask, nil)
    start.body()
    return nil
}
