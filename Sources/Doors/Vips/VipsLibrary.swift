import CVips
import Threads

/// libvips as a whole: started once, closed to formats that nobody asked for.
public enum VipsLibrary {
    /// Starts libvips for a server; later calls do nothing. To be called before anything else here.
    ///
    /// One thread per pipeline (jobs run side by side instead), no cache of operations (jobs do not repeat), and of all
    /// loaders only those of ``Format``: libvips marks many others as untrusted, and without the block a few bytes of
    /// junk reach ImageMagick. See "Block untrusted loaders" in libvips' `vips_block_untrusted_set`. What is decoded stays in
    /// memory, whatever its size, unless `VIPS_DISC_THRESHOLD` is set.
    public static func start() {
        _ = started
    }

    /// The formats whose loaders are open; all of ``Format`` at first.
    public static var allowed: Set<Format> { open.withLock { $0 } }

    /// Opens the loaders of these formats and closes all others, for the whole process: bytes of a closed format are
    /// `unsupportedFormat`. Starts libvips where that has not been done. To be called once, before images are opened;
    /// a picture that is open already goes on being decoded. What can be saved does not change.
    public static func allow(_ formats: Set<Format>) {
        start()
        open.withLock { open in
            for format in Format.allCases {
                vips_operation_block_set(format.loaderClass, formats.contains(format) ? 0 : 1)
            }
            open = formats
        }
    }

    /// The library's version, such as `8.14.1`.
    public static var version: String {
        String(cString: vips_version_string()).split(separator: "-").first.map(String.init) ?? ""
    }

    /// Gives back what libvips keeps for the calling thread: the last act of each thread that has used it.
    @Sendable public static func endThread() {
        // A thread may end before any has used libvips, which finds nothing to clean up only once it has been started.
        start()
        vips_thread_shutdown()
    }

    /// Pixel buffers that libvips holds now, over all threads; 0 a moment after every image is gone: libvips' own threads tell that a picture is
    /// done before they give their buffers back (`vips_threadset_work`).
    public static var liveBuffers: Int { Int(vips_tracked_get_allocs()) }

    /// Bytes of pixels that libvips holds now, over all threads.
    public static var liveBytes: Int { vips_tracked_get_mem() }

    /// The most bytes of pixels that libvips ever held at once.
    public static var highestBytes: Int { vips_tracked_get_mem_highwater() }

    /// Files that libvips has open.
    public static var openFiles: Int { Int(vips_tracked_get_files()) }

    /// Operations in libvips' cache, which ``start()`` switches off.
    public static var cachedOperations: Int { Int(vips_cache_get_size()) }

    /// Images, operations and other objects of libvips that are alive now, over all threads.
    public static var liveObjects: Int {
        var count = 0
        vips_object_map(countObject, &count, nil)
        return count
    }

    /// Whether this build of libvips has the operation.
    public static func has(operation name: String) -> Bool {
        start()
        return vips_type_find("VipsOperation", name) != 0
    }

    /// The names of all loaders that libvips would use now, such as `pngload_buffer`, as it says itself.
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
        precondition(cvips_start("halcyon") == 0, "libvips does not start: \(VipsError.last(in: "init").message)")
        precondition(cvips_keep_pictures_in_memory() != 0, "libvips has no option for where pictures are kept")
        vips_concurrency_set(1)
        vips_cache_set_max(0)
        vips_block_untrusted_set(1)
        vips_operation_block_set("VipsForeignLoad", 1)
        for format in Format.allCases {
            vips_operation_block_set(format.loaderClass, 0)
            // The saver of JPEG XL is among the untrusted too.
            if let saverClass = format.saverClass { vips_operation_block_set(saverClass, 0) }
        }
        // What a decoder says about a damaged picture comes as an error too, where it matters: not on standard error.
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

// A plain function: a closure made in isolated code would trap when C calls it on a thread of its own.
private func dropLogMessage(
    _ domain: UnsafePointer<CChar>?, _ level: GLogLevelFlags, _ message: UnsafePointer<CChar>?,
    _ context: UnsafeMutableRawPointer?
) {}

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

/// What libvips, or this door, refused to do.
public struct VipsError: Error, Sendable, CustomStringConvertible {
    /// The kinds of refusal that a caller may tell apart.
    public enum Code: Sendable, Hashable {
        /// The bytes are of no format that ``VipsLibrary`` allows.
        case unsupportedFormat
        /// An operation said no: damaged input, or arguments that do not fit the image.
        case failed
        /// A ``Cancellation`` stopped the pipeline.
        case cancelled
        /// There is no such operation, or no such argument of that kind: a mistake in the program.
        case misuse
    }

    /// Which kind it is.
    public let code: Code
    /// The operation's name as libvips knows it, such as `resize`.
    public let operation: String
    /// For people. libvips keeps one error text for the whole process, so with several threads it may hold another
    /// operation's words too: never branch on it.
    public let message: String
    /// Whether the same call may succeed later. It cannot: libvips' answers depend on the bytes and arguments alone.
    public var isRetriable: Bool { false }

    /// The operation, then the message.
    public var description: String { "\(operation): \(message)" }

    init(_ code: Code, _ operation: String, _ message: String) {
        self.code = code
        self.operation = operation
        self.message = message
    }

    /// Some decoders fail without a word.
    private static let speechless = "it failed without a message: as a rule the picture is damaged"

    /// A failure in libvips' own words, taken out of its buffer.
    static func last(_ code: Code = .failed, in operation: String) -> VipsError {
        let text = vips_error_buffer_copy()
        defer { g_free(text) }
        let lines = text.map { String(cString: $0) } ?? ""
        let message = lines.split(separator: "\n").prefix(3).joined(separator: "; ")
        return VipsError(code, operation, message.isEmpty ? speechless : String(message.prefix(400)))
    }
}
