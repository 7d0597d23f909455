import CVips
import Concurrency
import Glibc

/// Pixels in memory.
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
            let format = Format.allCases.first(where: { loader.hasPrefix("\($0.rawValue)load") })
        else { return false }
        return switch format {
        case .jpeg, .png, .tiff: text(of: "interlaced") == "1"
        case .webp, .gif, .heif, .jxl, .svg, .pdf: true
        }
    }
}
