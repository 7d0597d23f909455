import CVips
import Threads

/// Keeps threads apart where libvips makes and frees machine code.
///
/// libvips up to 8.14 has Orc translate its inner loops each time an operation such as `resize` is built, and free them
/// with it. Orc 0.4.33 (Debian 12) lets go of its lock between finding a free piece of memory and marking it as used,
/// and takes none to free it: two threads that build and drop resizes crash within some 50,000 of them. So with Orc,
/// what may translate or free runs under one lock: about a millisecond of a rendering.
enum VectorCode {
    // It guards nothing of ours. Not Void: a value without bytes shares its place with the mutex, which the thread
    // sanitizer takes for a race.
    private static let lock: Lock<Bool>? = cvips_translates_at_run_time() != 0 ? Lock(true) : nil

    /// Whether libvips has such code.
    static var isTranslated: Bool { lock != nil }

    /// Runs `body` while no other thread runs such a body. It must not wait, nor come here again.
    static func alone<Result>(_ body: () -> Result) -> Result {
        guard let lock else { return body() }
        return lock.withLock { _ in body() }
    }
}
