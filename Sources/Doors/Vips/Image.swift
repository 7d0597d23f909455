import CVips

/// A picture of libvips: its header, and a recipe for its pixels that runs when they are needed.
///
/// It owns one reference. It is not Sendable: a pipeline is built, run and dropped by one job on one thread; only a
/// ``Cancellation`` may reach it from elsewhere.
public final class Image {
    let handle: UnsafeMutablePointer<CVips.VipsImage>

    init(owning handle: UnsafeMutablePointer<CVips.VipsImage>) {
        self.handle = handle
    }

    /// Another owner of the picture that `image` has.
    convenience init(sharing image: Image) {
        g_object_ref(image.handle)
        self.init(owning: image.handle)
    }

    /// A picture of 8-bit samples, `bands` to the pixel, row by row from the top left, copied. Three and four bands are
    /// sRGB, one and two are grey; the last of two or four is alpha.
    ///
    /// - Throws: ``VipsError`` when `pixels` has not `width * height * bands` bytes.
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
        // With the last reference go the operations behind the picture.
        VectorCode.alone { g_object_unref(handle) }
    }

    /// Pixels across.
    public var width: Int { Int(handle.pointee.Xsize) }
    /// Pixels down; over all pages where several are loaded.
    public var height: Int { Int(handle.pointee.Ysize) }
    /// Where the upper left corner of the picture that this one was cut from lies, seen from this one's.
    public var offset: (x: Int, y: Int) { (Int(handle.pointee.Xoffset), Int(handle.pointee.Yoffset)) }
    /// Samples per pixel.
    public var bands: Int { Int(handle.pointee.Bands) }
    /// Whether the last band is alpha.
    public var hasAlpha: Bool { vips_image_hasalpha(handle) != 0 }
    /// How to turn the picture to stand upright, as EXIF counts: 1 (nothing to do) to 8.
    public var orientation: Int { Int(vips_image_get_orientation(handle)) }

    /// What the samples are.
    public enum SampleFormat: Sendable, Hashable {
        /// 8 bits, 0 to 255.
        case uint8
        /// 16 bits, 0 to 65535.
        case uint16
        /// Anything wider, signed, or with a fraction.
        case other
    }

    /// What the samples are.
    public var sampleFormat: SampleFormat {
        switch handle.pointee.BandFmt {
        case VIPS_FORMAT_UCHAR: .uint8
        case VIPS_FORMAT_USHORT: .uint16
        default: .other
        }
    }

    /// What the samples mean.
    public enum Interpretation: Sendable, Hashable {
        /// 8-bit red, green, blue.
        case sRGB
        /// 16-bit red, green, blue.
        case rgb16
        /// 8-bit grey.
        case grey
        /// 16-bit grey.
        case grey16
        /// Four inks.
        case cmyk
        /// Another colour space of libvips.
        case other
    }

    /// What the samples mean.
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

    /// All samples, row by row from the top left, as they lie in memory.
    ///
    /// - Throws: ``VipsError`` where the pixels cannot be computed.
    public func pixels() throws(VipsError) -> [UInt8] {
        var size = 0
        guard let memory = vips_image_write_to_memory(handle, &size) else { throw .last(in: "write_to_memory") }
        defer { g_free(memory) }
        return Array(UnsafeRawBufferPointer(start: memory, count: size))
    }

    /// Runs what computes this image's pixels, with the way for `cancellation` to stop it.
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
    /// A picture of one colour, computed as it is needed. One number is grey, two are grey and alpha, three are sRGB,
    /// four are sRGB and alpha, each 0 to 255.
    ///
    /// - Throws: ``VipsError`` where the size is none, of code `misuse` for another count of numbers.
    public convenience init(color: [Double], width: Int, height: Int) throws(VipsError) {
        guard (1...4).contains(color.count) else {
            throw VipsError(.misuse, "linear", "a colour has one to four numbers, not \(color.count)")
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

    /// That part of the picture; all of it is the picture itself.
    ///
    /// - Throws: ``VipsError`` where the part leaves the picture.
    public func cropped(_ x: Int, _ y: Int, _ width: Int, _ height: Int) throws(VipsError) -> Image {
        guard width != self.width || height != self.height || x != 0 || y != 0 else { return self }
        return try Operation.call(
            "extract_area",
            ["input": .image(self), "left": .int(x), "top": .int(y), "width": .int(width), "height": .int(height)]
        ).image()
    }

    /// The samples of one pixel.
    ///
    /// - Throws: ``VipsError`` where there is no such pixel or it cannot be computed.
    public func samples(x: Int, y: Int) throws(VipsError) -> [Double] {
        try Operation.call("getpoint", ["in": .image(self), "x": .int(x), "y": .int(y)]).doubles("out-array")
    }

    /// The average of each band, over all pixels, which are computed.
    ///
    /// - Throws: ``VipsError``, `cancelled` where `cancellation` stopped it.
    public func averages(_ cancellation: Cancellation? = nil) throws(VipsError) -> [Double] {
        let bands = self.bands
        return try running(cancellation, "stats") { () throws(VipsError) in
            let statistics = try Operation.call("stats", ["in": .image(self)]).image()
            // A row for all bands together, then one for each; the average stands in the fifth column.
            var averages: [Double] = []
            for band in 0..<bands { averages += try statistics.samples(x: 4, y: band + 1) }
            return averages
        }
    }
}

extension Image {
    /// Numbers in rows, as `recomb` and `conv` take them.
    ///
    /// - Parameters:
    ///   - rows: at least one, all of one length above 0.
    ///   - scale: what `conv` divides its sums by.
    /// - Throws: ``VipsError`` of code `misuse` for rows of different lengths, or none.
    public convenience init(matrix rows: [[Double]], scale: Double = 1) throws(VipsError) {
        VipsLibrary.start()
        let width = rows.first?.count ?? 0
        guard width > 0, rows.allSatisfy({ $0.count == width }) else {
            throw VipsError(.misuse, "image_new_matrix", "a matrix has rows of one length")
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
