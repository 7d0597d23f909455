import CVips
import Concurrency
import Glibc

/// A libvips picture: its header, and a pipeline that computes its pixels when they are needed.
///
/// It owns one reference. It is not Sendable, because a pipeline is built, run and released by one job on one thread.
/// Only a ``Cancellation`` may access it from another thread.
public final class Image {
    let handle: UnsafeMutablePointer<CVips.VipsImage>

    init(owning handle: UnsafeMutablePointer<CVips.VipsImage>) {
        self.handle = handle
    }

    /// Creates another owner of the picture of `image`.
    convenience init(sharing image: Image) {
        g_object_ref(image.handle)
        self.init(owning: image.handle)
    }

    /// Creates a picture from a copy of 8-bit samples, with `bands` samples per pixel, row by row from the top left.
    /// Three and four bands are sRGB, one and two are gray. The last of two or four bands is alpha.
    ///
    /// - Throws: ``VipsError`` if `pixels` does not have `width * height * bands` bytes.
    public convenience init(pixels: [UInt8], width: Int, height: Int, bands: Int) throws(VipsError) {
        VipsLibrary.start()
        guard
            let handle = vips_image_new_from_memory_copy(
                pixels, pixels.count, Int32(width), Int32(height), Int32(bands), VIPS_FORMAT_UCHAR)
        else { throw .last(in: "image_new_from_memory") }
        handle.pointee.Type = bands < 3 ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB
        self.init(owning: handle)
    }

    /// Creates a picture of one 8-bit band from samples that are read where they are, row by row from the top left.
    ///
    /// - Parameter offset: the position of the first sample. All samples must lie within the bytes.
    /// - Throws: ``VipsError`` if there are no samples, or too many in a row.
    convenience init(
        samples: RetainedBlob, from offset: Int, width: Int, height: Int
    ) throws(VipsError) {
        VipsLibrary.start()
        precondition(offset >= 0 && width * height <= samples.count - offset)
        guard
            let start = samples.start,
            let handle = vips_image_new_from_memory(
                start + offset, width * height, Int32(width), Int32(height), 1, VIPS_FORMAT_UCHAR)
        else { throw .last(in: "image_new_from_memory") }
        handle.pointee.Type = VIPS_INTERPRETATION_B_W
        // The picture, and with it the bytes, lives as long as any pipeline that reads it.
        g_object_set_data_full(
            UnsafeMutableRawPointer(handle).assumingMemoryBound(to: GObject.self), "halcyon-samples",
            Unmanaged.passRetained(samples).toOpaque(), releaseSamples)
        self.init(owning: handle)
    }

    deinit {
        // Releasing the last reference also frees the operations of the pipeline.
        SIMDSupport.alone { g_object_unref(handle) }
    }

    /// The width in pixels.
    public var width: Int { Int(handle.pointee.Xsize) }
    /// The height in pixels, of all pages together if several are loaded.
    public var height: Int { Int(handle.pointee.Ysize) }
    /// The offset from this picture's origin to the origin of the picture that it was cropped from.
    public var offset: (x: Int, y: Int) { (Int(handle.pointee.Xoffset), Int(handle.pointee.Yoffset)) }
    /// The number of samples per pixel.
    public var bands: Int { Int(handle.pointee.Bands) }
    /// True if the last band is alpha.
    public var hasAlpha: Bool { vips_image_hasalpha(handle) != 0 }
    /// The EXIF orientation of the picture: 1 (upright) to 8.
    public var orientation: Int { Int(vips_image_get_orientation(handle)) }

    /// The type of the samples.
    public enum SampleFormat: Sendable, Hashable {
        /// 8 bits, 0 to 255.
        case uint8
        /// 16 bits, 0 to 65535.
        case uint16
        /// A wider, signed or floating-point type.
        case other
    }

    /// The type of this picture's samples.
    public var sampleFormat: SampleFormat {
        switch handle.pointee.BandFmt {
        case VIPS_FORMAT_UCHAR: .uint8
        case VIPS_FORMAT_USHORT: .uint16
        default: .other
        }
    }

    /// The color space of the samples.
    public enum Interpretation: Sendable, Hashable {
        /// 8-bit red, green, blue.
        case sRGB
        /// 16-bit red, green, blue.
        case rgb16
        /// 8-bit gray.
        case grey
        /// 16-bit gray.
        case grey16
        /// CMYK inks.
        case cmyk
        /// Another color space of libvips.
        case other
    }

    /// The color space of this picture's samples.
    public var interpretation: Interpretation {
        switch vips_image_guess_interpretation(handle) {
        case VIPS_INTERPRETATION_sRGB: .sRGB
        case VIPS_INTERPRETATION_RGB16: .rgb16
        case VIPS_INTERPRETATION_B_W: .grey
        case VIPS_INTERPRETATION_GREY16: .grey16
        case VIPS_INTERPRETATION_CMYK: .cmyk
        default: .other
        }
    }

    /// Returns all samples in memory order, row by row from the top left.
    ///
    /// - Throws: ``VipsError`` if the pixels cannot be computed.
    public func pixels() throws(VipsError) -> [UInt8] {
        var size = 0
        guard let memory = vips_image_write_to_memory(handle, &size) else { throw .last(in: "write_to_memory") }
        defer { g_free(memory) }
        return Array(UnsafeRawBufferPointer(start: memory, count: size))
    }

    /// Runs `body`, which computes this image's pixels, so that `cancellation` can stop it.
    func running<Result>(
        _ cancellation: Cancellation?, _ operation: String, _ body: () throws(VipsError) -> Result
    ) throws(VipsError) -> Result {
        guard let cancellation else { return try body() }
        guard cancellation.begin(self) else { throw VipsError(.cancelled, operation, "cancelled") }
        let outcome: Swift.Result<Result, VipsError>
        do throws(VipsError) { outcome = .success(try body()) } catch { outcome = .failure(error) }
        guard cancellation.end() else { return try outcome.get() }
        throw VipsError(.cancelled, operation, "cancelled")
    }
}

extension Image {
    /// Creates a picture of one color, computed as needed. One component is gray, two are gray and alpha, three are
    /// sRGB, and four are sRGB and alpha, each from 0 to 255.
    ///
    /// - Throws: ``VipsError`` if the size is invalid, with code `misuse` if the number of components is.
    public convenience init(color: [Double], width: Int, height: Int) throws(VipsError) {
        guard (1...4).contains(color.count) else {
            throw VipsError(.misuse, "linear", "a color has one to four components, not \(color.count)")
        }
        let black = try Operation.call("black", ["width": 1, "height": 1, "bands": .int(color.count)]).image()
        let dot = try Operation.call(
            "linear", ["in": .image(black), "a": [1], "b": .doubles(color), "uchar": true]
        ).image()
        let marked = try Operation.call(
            "copy", ["in": .image(dot), "interpretation": color.count < 3 ? "b-w" : "srgb"]
        ).image()
        let whole = try Operation.call(
            "embed",
            [
                "in": .image(marked), "x": 0, "y": 0, "width": .int(width), "height": .int(height), "extend": "copy",
            ]
        ).image()
        self.init(sharing: whole)
    }

    /// Returns a part of the picture, or this picture if the part covers it.
    ///
    /// - Throws: ``VipsError`` if the part extends beyond the picture.
    public func cropped(_ x: Int, _ y: Int, _ width: Int, _ height: Int) throws(VipsError) -> Image {
        guard width != self.width || height != self.height || x != 0 || y != 0 else { return self }
        return try Operation.call(
            "extract_area",
            ["input": .image(self), "left": .int(x), "top": .int(y), "width": .int(width), "height": .int(height)]
        ).image()
    }

    /// Returns the samples of one pixel.
    ///
    /// - Throws: ``VipsError`` if the position is outside the picture, or the pixel cannot be computed.
    public func samples(x: Int, y: Int) throws(VipsError) -> [Double] {
        try Operation.call("getpoint", ["in": .image(self), "x": .int(x), "y": .int(y)]).doubles("out-array")
    }

    /// Computes all pixels and returns the average of each band.
    ///
    /// - Throws: ``VipsError``, with code `cancelled` if `cancellation` stopped the pipeline.
    public func averages(_ cancellation: Cancellation? = nil) throws(VipsError) -> [Double] {
        let bands = self.bands
        return try running(cancellation, "stats") { () throws(VipsError) in
            let statistics = try Operation.call("stats", ["in": .image(self)]).image()
            // The first row is for all bands, followed by one row for each band. The fifth column is the average.
            var averages: [Double] = []
            for band in 0..<bands { averages += try statistics.samples(x: 4, y: band + 1) }
            return averages
        }
    }
}

extension Image {
    /// Creates a matrix, as `recomb` and `conv` expect it.
    ///
    /// - Parameters:
    ///   - rows: at least one row; all rows have the same length, which is at least 1.
    ///   - scale: the divisor that `conv` applies to its sums.
    /// - Throws: ``VipsError`` with code `misuse` for rows of different lengths, or no rows.
    public convenience init(matrix rows: [[Double]], scale: Double = 1) throws(VipsError) {
        VipsLibrary.start()
        let width = rows.first?.count ?? 0
        guard width > 0, rows.allSatisfy({ $0.count == width }) else {
            throw VipsError(.misuse, "image_new_matrix", "a matrix needs rows of equal length")
        }
        let numbers = rows.flatMap { $0 }
        guard
            let handle = vips_image_new_matrix_from_array(
                Int32(width), Int32(rows.count), numbers, Int32(numbers.count))
        else { throw .last(in: "image_new_matrix") }
        vips_image_set_double(handle, "scale", scale)
        self.init(owning: handle)
    }
}

// Pixels in memory.
extension Image {
    /// Computes all pixels now and returns a picture that holds them in memory. Decoding happens here, and damaged
    /// input is detected here.
    ///
    /// - Throws: ``VipsError``, with code `cancelled` if `cancellation` stopped the pipeline.
    public func inMemory(_ cancellation: Cancellation? = nil) throws(VipsError) -> Image {
        try running(cancellation, "copy_memory") { () throws(VipsError) in
            if isComputedByRows { return try computed() }
            guard let copy = vips_image_copy_memory(handle) else { throw .last(in: "copy_memory") }
            return Image(owning: copy)
        }
    }

    /// True if the picture is a pipeline that can be computed in whole rows. Operations that read the neighborhood of
    /// each pixel request small tiles instead, because then fewer pixels beyond the edges are computed twice.
    private var isComputedByRows: Bool {
        handle.pointee.dtype == VIPS_IMAGE_PARTIAL && handle.pointee.dhint != VIPS_DEMAND_STYLE_SMALLTILE
    }

    /// Creates a picture in memory with this picture's header, the given size, and uninitialized pixels.
    func blank(width: Int, height: Int) throws(VipsError) -> Image {
        guard let memory = vips_image_new_memory() else { throw .last(in: "image_new_memory") }
        let image = Image(owning: memory)
        var origin: [UnsafeMutablePointer<CVips.VipsImage>?] = [handle, nil]
        guard vips_image_pipeline_array(memory, VIPS_DEMAND_STYLE_ANY, &origin) == 0 else {
            throw .last(in: "image_new_memory")
        }
        memory.pointee.Xsize = Int32(width)
        memory.pointee.Ysize = Int32(height)
        guard vips_image_write_prepare(memory) == 0, let start = vips_image_get_data(memory) else {
            throw .last(in: "image_new_memory")
        }
        image.useLargePages(from: UInt(bitPattern: start))
        return image
    }

    /// Computes the pixels of a pipeline on this thread, a few rows at a time. `copy_memory` hands the computation to
    /// another thread and waits for it each time, which for small pictures takes as long as the pixels themselves.
    private func computed() throws(VipsError) -> Image {
        let image = try blank(width: width, height: height)
        guard let source = vips_region_new(handle) else { throw .last(in: "region_new") }
        defer { g_object_unref(source) }
        guard let target = vips_region_new(image.handle) else { throw .last(in: "region_new") }
        defer { g_object_unref(target) }
        var whole = VipsRect(left: 0, top: 0, width: Int32(width), height: Int32(height))
        guard vips_region_image(target, &whole) == 0 else { throw .last(in: "region_image") }
        for top in stride(from: 0, to: whole.height, by: 16) {
            var rows = VipsRect(left: 0, top: top, width: whole.width, height: min(16, whole.height - top))
            guard vips_region_prepare_to(source, target, &rows, 0, top) == 0 else { throw .last(in: "region_prepare") }
        }
        return image
    }

    /// Asks the system for pages of 2 MiB within the pixels of this picture. Faulting in small pages one by one takes a
    /// tenth of the time of decoding. Has no effect if no large pages are available.
    private func useLargePages(from start: UInt) {
        let page: UInt = 2 << 20
        let bytes = UInt(width * height * bands) * UInt(vips_format_sizeof(handle.pointee.BandFmt))
        let (first, end) = ((start + page - 1) / page * page, (start + bytes) / page * page)
        if first < end { madvise(UnsafeMutableRawPointer(bitPattern: first), Int(end - first), MADV_HUGEPAGE) }
    }
}

private func releaseSamples(_ samples: UnsafeMutableRawPointer?) {
    guard let samples else { return }
    Unmanaged<RetainedBlob>.fromOpaque(samples).release()
}

/// A token that stops a running pipeline from another thread. Use one token for each job.
public final class Cancellation: Sendable {
    private struct State {
        var cancelled = false
        /// The address of the image whose pixels are being computed. The job sets and clears it, and retains the image
        /// in between, so the image is always valid under the lock.
        var running: UInt?
    }

    private let state = Lock(State())

    /// Creates a token that is not cancelled.
    public init() {}

    /// True if ``cancel()`` was called.
    public var isCancelled: Bool { state.withLock { $0.cancelled } }

    /// Stops the running pipeline and prevents later ones with this token. libvips checks for cancellation between
    /// strips of pixels, so stopping takes a few milliseconds. A codec that processes the whole picture at once
    /// finishes first; see ``Format/stopsWhileLoading``, ``Image/isDecodedAtOnce`` and ``Format/stopsWhileSaving``.
    public func cancel() {
        state.withLock { state in
            state.cancelled = true
            guard let address = state.running else { return }
            vips_image_set_kill(UnsafeMutablePointer(bitPattern: address), 1)
        }
    }

    /// Registers the image to be computed. Returns false if the token is already cancelled, in which case the work must
    /// not begin.
    func begin(_ image: Image) -> Bool {
        let address = UInt(bitPattern: image.handle)
        return state.withLock { state in
            guard !state.cancelled else { return false }
            state.running = address
            return true
        }
    }

    /// Unregisters the image. Returns true if the token was cancelled in the meantime, in which case a failure of the
    /// work is expected.
    func end() -> Bool {
        state.withLock { state in
            state.running = nil
            return state.cancelled
        }
    }
}

extension Image {
    /// True if the decoder of this picture, as it was opened, produces all pixels at once, so that a ``Cancellation``
    /// has to wait for it. This holds for progressive JPEG, interlaced PNG, and all formats except JPEG, PNG and TIFF.
    /// False for a picture that was not opened from a file.
    ///
    /// Measured with libvips 8.14.1 in CPU milliseconds, for decoding 40 megapixels, shrinking them to a tenth, and
    /// cancelling after three tenths of the time (from cancellation to return / without cancellation): JPEG 2 / 287,
    /// progressive 288 / 559; PNG 26 / 970, interlaced 877 / 1289; TIFF in tiles 191 / 831; WebP 492 / 1243, with ten
    /// frames 735 / 1167; GIF 342 / 740, with ten frames 17 / 799; AVIF 586 / 1053; HEIC 2288 / 2830; JPEG XL 1026 /
    /// 1959; PDF 1169 / 2015; SVG with a filter over 3 megapixels 782 / 1155, with 200 circles over 40 megapixels 2712
    /// / 20920.
    public var isDecodedAtOnce: Bool {
        guard
            let loader = text(of: "vips-loader"),
            let format = Format.allCases.first(where: { $0.operation.map(loader.hasPrefix) ?? false })
        else { return false }
        return switch format {
        case .jpeg, .png, .tiff: text(of: "interlaced") == "1"
        case .webp, .gif, .heif, .jxl, .svg, .pdf, .jp2: true
        case .bmp, .ico: false
        }
    }
}
