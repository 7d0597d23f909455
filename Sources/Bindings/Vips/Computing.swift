import CVips
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
