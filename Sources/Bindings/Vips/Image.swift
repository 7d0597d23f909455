import CVips

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
