import CVips
import Concurrency

/// The libvips library, initialized once and restricted to the allowed formats.
public enum VipsLibrary {
    /// Starts libvips with settings for a server. Must be called before anything else here. Later calls have no effect.
    ///
    /// Uses one thread per pipeline (jobs run in parallel instead), no operation cache (jobs do not repeat), and only
    /// the loaders of ``Format``. libvips marks many others as untrusted; without the block, a few bytes of junk reach
    /// ImageMagick. See `vips_block_untrusted_set` in the libvips documentation. Decoded pixels stay in memory,
    /// whatever their size, unless `VIPS_DISC_THRESHOLD` is set.
    public static func start() {
        _ = started
    }

    /// The formats whose loaders are enabled; initially all of ``Format``.
    public static var allowed: Set<Format> { open.withLock { $0 } }

    /// Enables the loaders of these formats and disables all others, for the whole process. Bytes in a disabled format
    /// fail with `unsupportedFormat`. Starts libvips if necessary. Must be called once, before images are opened;
    /// decoding of open pictures continues. Saving is not affected.
    public static func allow(_ formats: Set<Format>) {
        start()
        open.withLock { open in
            for format in Format.allCases {
                guard let loaderClass = format.loaderClass else { continue }
                vips_operation_block_set(loaderClass, formats.contains(format) ? 0 : 1)
            }
            open = formats
        }
    }

    /// The version of the library, such as `8.14.1`.
    public static var version: String {
        String(cString: vips_version_string()).split(separator: "-").first.map(String.init) ?? ""
    }

    /// Frees the per-thread data of libvips. Each thread that has used libvips must call this last.
    @Sendable public static func endThread() {
        // A thread may end before any thread has used libvips, and the cleanup requires that libvips is started.
        start()
        vips_thread_shutdown()
    }

    /// The number of pixel buffers that libvips holds, over all threads. It becomes 0 shortly after the last image is
    /// released, because libvips' worker threads signal that a picture is done before they release their buffers
    /// (`vips_threadset_work`).
    public static var liveBuffers: Int { Int(vips_tracked_get_allocs()) }

    /// The bytes of pixels that libvips holds, over all threads.
    public static var liveBytes: Int { vips_tracked_get_mem() }

    /// The maximum number of bytes of pixels that libvips has held at once.
    public static var highestBytes: Int { vips_tracked_get_mem_highwater() }

    /// The number of files that libvips has open.
    public static var openFiles: Int { Int(vips_tracked_get_files()) }

    /// The number of operations in libvips' cache, which ``start()`` disables.
    public static var cachedOperations: Int { Int(vips_cache_get_size()) }

    /// The number of live images, operations and other objects of libvips, over all threads.
    public static var liveObjects: Int {
        var count = 0
        vips_object_map(countObject, &count, nil)
        return count
    }

    /// True if this build of libvips has the operation.
    public static func has(operation name: String) -> Bool {
        start()
        return vips_type_find("VipsOperation", name) != 0
    }

    /// The names of all loaders that libvips currently allows, such as `pngload_buffer`, according to libvips itself.
    public static var openLoaders: [String] {
        start()
        let names = Names()
        vips_class_map_all(
            g_type_from_name("VipsForeignLoad"), addOpenLoader, Unmanaged.passUnretained(names).toOpaque())
        return names.list
    }

    private static let open = Lock(Set(Format.allCases))

    private static let started: Void = {
        cvips_give_memory_back()
        precondition(cvips_start("halcyon") == 0, "libvips failed to start: \(VipsError.last(in: "init").message)")
        precondition(cvips_keep_pictures_in_memory() != 0, "libvips has no option for the storage of decoded pictures")
        vips_concurrency_set(1)
        vips_cache_set_max(0)
        vips_block_untrusted_set(1)
        vips_operation_block_set("VipsForeignLoad", 1)
        for format in Format.allCases {
            if let loaderClass = format.loaderClass { vips_operation_block_set(loaderClass, 0) }
            // The saver of JPEG XL is marked as untrusted too.
            if let saverClass = format.saverClass { vips_operation_block_set(saverClass, 0) }
        }
        // Messages of decoders about damaged pictures are reported as errors too, so they need not go to standard
        // error.
        _ = g_log_set_handler("VIPS", G_LOG_LEVEL_MASK, dropLogMessage, nil)
    }()
}

private final class Names {
    var list: [String] = []
}

private func addOpenLoader(
    _ loader: UnsafeMutablePointer<VipsObjectClass>?, _ names: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
    guard let loader, let names else { return nil }
    let operation = UnsafeMutableRawPointer(loader).assumingMemoryBound(to: VipsOperationClass.self)
    if operation.pointee.flags.rawValue & VIPS_OPERATION_BLOCKED.rawValue == 0 {
        let names = Unmanaged<Names>.fromOpaque(names).takeUnretainedValue()
        names.list.append(String(cString: loader.pointee.nickname))
    }
    return nil
}

private func countObject(
    _ object: UnsafeMutableRawPointer?, _ count: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
    count?.assumingMemoryBound(to: Int.self).pointee += 1
    return nil
}

// A plain function, because a closure created in isolated code would trap when C calls it on another thread.
private func dropLogMessage(
    _ domain: UnsafePointer<CChar>?, _ level: GLogLevelFlags, _ message: UnsafePointer<CChar>?,
    _ context: UnsafeMutableRawPointer?
) {}

/// Serializes the parts of libvips that generate and free machine code.
///
/// libvips up to 8.14 uses Orc to compile its inner loops each time an operation such as `resize` is built, and frees
/// the code with the operation. Orc 0.4.33 (Debian 12) releases its lock between finding a free chunk of memory and
/// marking it as used, and frees chunks without a lock. Two threads that build and release resizes crash within some
/// 50,000 of them. So with Orc, everything that may compile or free code runs under one lock, which takes about a
/// millisecond of a rendering.
enum SIMDSupport {
    // The lock protects no Swift value. Its type is not Void, because a value without bytes has the same address as the
    // mutex, which the thread sanitizer reports as a race.
    private static let lock: Lock<Bool>? = cvips_translates_at_run_time() != 0 ? Lock(true) : nil

    /// True if libvips compiles code at run time.
    static var isTranslated: Bool { lock != nil }

    /// Runs `body` while no other thread runs such a body. It must not block, and must not call this method again.
    static func alone<Result>(_ body: () -> Result) -> Result {
        guard let lock else { return body() }
        return lock.withLock { _ in body() }
    }
}

/// An error of libvips or of this module.
public struct VipsError: Error, Sendable, CustomStringConvertible {
    /// The kinds of error that a caller can distinguish.
    public enum Code: Sendable, Hashable {
        /// The bytes are not in a format that ``VipsLibrary`` allows.
        case unsupportedFormat
        /// An operation failed because of damaged input, or of arguments that do not fit the image.
        case failed
        /// A ``Cancellation`` stopped the pipeline.
        case cancelled
        /// There is no such operation, or no such argument of this type. This is a programming error.
        case misuse
    }

    /// The kind of error.
    public let code: Code
    /// The libvips name of the operation, such as `resize`.
    public let operation: String
    /// The error text. libvips has one error buffer for the whole process, so with several threads it may include
    /// messages of other operations. Never branch on it.
    public let message: String
    /// Always false, because the results of libvips depend only on the bytes and the arguments.
    public var isRetriable: Bool { false }

    /// The operation and the message.
    public var description: String { "\(operation): \(message)" }

    init(_ code: Code, _ operation: String, _ message: String) {
        self.code = code
        self.operation = operation
        self.message = message
    }

    /// The message for decoders that fail without one.
    private static let speechless = "failed without a message; the picture is probably damaged"

    /// Creates an error from libvips' error buffer, and clears the buffer.
    static func last(_ code: Code = .failed, in operation: String) -> VipsError {
        let text = vips_error_buffer_copy()
        defer { g_free(text) }
        let lines = text.map { String(cString: $0) } ?? ""
        let message = lines.split(separator: "\n").prefix(3).joined(separator: "; ")
        return VipsError(code, operation, message.isEmpty ? speechless : String(message.prefix(400)))
    }
}
