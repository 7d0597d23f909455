import CVips

/// A value of a picture's header: a field or an item of metadata.
public enum HeaderValue: Sendable {
    /// An integer, such as `page-height`, `loop` and `orientation`.
    case int(Int)
    /// A list of integers, such as `delay`.
    case ints([Int])
    /// A string.
    case text(String)
    /// A binary blob, such as `exif-data`, `xmp-data`, `iptc-data` and `icc-profile-data`.
    case bytes([UInt8])
}

extension HeaderValue: ExpressibleByIntegerLiteral {
    /// Creates an integer value.
    public init(integerLiteral value: Int) { self = .int(value) }
}

extension Image {
    /// Returns a picture with the same pixels and these header fields set. This picture does not change.
    ///
    /// - Parameter header: values by libvips' field names.
    /// - Throws: ``VipsError`` if the picture cannot be copied.
    public func with(header: [String: HeaderValue]) throws(VipsError) -> Image {
        try editing { copy in
            for (name, value) in header {
                switch value {
                case .int(let number): vips_image_set_int(copy, name, Int32(clamping: number))
                case .ints(let numbers):
                    let numbers = numbers.map { Int32(clamping: $0) }
                    vips_image_set_array_int(copy, name, numbers, Int32(numbers.count))
                case .text(let text): vips_image_set_string(copy, name, text)
                case .bytes(let bytes): vips_image_set_blob_copy(copy, name, bytes, bytes.count)
                }
            }
        }
    }

    /// Returns a picture with the same pixels, without these header fields. This picture does not change.
    ///
    /// - Throws: ``VipsError`` if the picture cannot be copied.
    public func without(fields: some Collection<String>) throws(VipsError) -> Image {
        guard fields.contains(where: has(field:)) else { return self }
        return try editing { copy in
            for field in fields { vips_image_remove(copy, field) }
        }
    }

    // Pipelines may share headers, so only a private copy may be changed.
    private func editing(_ change: (UnsafeMutablePointer<CVips.VipsImage>) -> Void) throws(VipsError) -> Image {
        let copy = try Operation.call("copy", ["in": .image(self)]).image()
        change(copy.handle)
        return copy
    }
}

/// Frames and pages. libvips stacks them, each ``pageHeight`` pixels high, into one tall picture, a strip.
extension Image {
    /// The number of frames or pages in the file; 1 if the format has none. ``frames`` is the number that was loaded.
    public var pages: Int {
        // vips_image_get_n_pages treats 10,000 and more as invalid, and returns 1.
        var count: Int32 = 0
        guard has(field: "n-pages"), vips_image_get_int(handle, "n-pages", &count) == 0 else {
            vips_error_clear()
            return 1
        }
        return max(1, Int(count))
    }

    /// The height of each frame of a strip in pixels; ``height`` for a single picture.
    public var pageHeight: Int { Int(vips_image_get_page_height(handle)) }

    /// The number of frames in this picture, stacked vertically.
    public var frames: Int { height / pageHeight }

    /// The display duration of each frame of the file in milliseconds; empty if the file does not specify it.
    public var frameDelays: [Int] {
        var delays: UnsafeMutablePointer<Int32>?
        var count: Int32 = 0
        guard has(field: "delay"), vips_image_get_array_int(handle, "delay", &delays, &count) == 0, let delays
        else {
            vips_error_clear()
            return []
        }
        return UnsafeBufferPointer(start: delays, count: Int(count)).map(Int.init)
    }

    /// The number of times that an animation is played, 0 for an endless loop; nil if the file does not specify it.
    public var loopCount: Int? {
        var count: Int32 = 0
        guard has(field: "loop"), vips_image_get_int(handle, "loop", &count) == 0 else {
            vips_error_clear()
            return nil
        }
        return Int(count)
    }

    /// Returns one frame of a strip as a still picture, without computing pixels. If the strip was opened with
    /// sequential access, frames must be computed in order.
    ///
    /// - Throws: ``VipsError`` with code `misuse` for an index outside `0..<frames`.
    public func page(_ index: Int) throws(VipsError) -> Image {
        guard (0..<frames).contains(index) else {
            throw VipsError(.misuse, "extract_area", "frame \(index) is out of range; there are \(frames) frames")
        }
        return try cropped(0, index * pageHeight, width, pageHeight)
            .without(fields: ["page-height", "n-pages", "delay", "loop"])
    }

    /// Joins frames into a strip, with the first on top, which GIF and WebP save as an animation. The metadata is that
    /// of the first frame.
    ///
    /// - Parameters:
    ///   - delays: the display duration of each frame in milliseconds; empty to leave it out.
    ///   - loop: the number of times that the animation is played, 0 for an endless loop.
    /// - Throws: ``VipsError`` with code `misuse` if there are no frames, if their sizes differ, or if the number of
    ///   delays is neither 0 nor the number of frames.
    public static func strip(_ frames: [Image], delays: [Int] = [], loop: Int = 0) throws(VipsError) -> Image {
        guard let first = frames.first else { throw VipsError(.misuse, "arrayjoin", "a strip needs a frame") }
        guard frames.allSatisfy({ $0.width == first.width && $0.height == first.height }) else {
            throw VipsError(.misuse, "arrayjoin", "the frames differ in size")
        }
        guard delays.isEmpty || delays.count == frames.count else {
            throw VipsError(.misuse, "arrayjoin", "\(delays.count) delays for \(frames.count) frames")
        }
        var header: [String: HeaderValue] = [
            "page-height": .int(first.height), "n-pages": .int(frames.count), "loop": .int(loop),
        ]
        if !delays.isEmpty { header["delay"] = .ints(delays) }
        let joined = try Operation.call("arrayjoin", ["in": .images(frames), "across": 1]).image()
        return try (delays.isEmpty ? joined.without(fields: ["delay"]) : joined).with(header: header)
    }
}

extension Image {
    /// The names of all header fields and metadata, such as `width`, `exif-data`, `icc-profile-data`.
    public var fields: [String] {
        guard let names = vips_image_get_fields(handle) else { return [] }
        defer { g_strfreev(names) }
        var fields: [String] = []
        var place = names
        while let name = place.pointee {
            fields.append(String(cString: name))
            place += 1
        }
        return fields
    }

    /// True if the picture has this field or metadata.
    public func has(field name: String) -> Bool { vips_image_get_typeof(handle, name) != 0 }

    /// A copy of a binary field, such as `icc-profile-data` or `exif-data`; nil if the field is missing.
    public func bytes(of field: String) -> [UInt8]? {
        guard vips_image_get_typeof(handle, field) == cvips_type_blob() else { return nil }
        var data: UnsafeRawPointer?
        var size = 0
        guard vips_image_get_blob(handle, field, &data, &size) == 0, let data else { return nil }
        return Array(UnsafeRawBufferPointer(start: data, count: size))
    }

    /// A field of any type as text; nil if the field is missing.
    public func text(of field: String) -> String? {
        guard has(field: field) else { return nil }
        var text: UnsafeMutablePointer<CChar>?
        guard vips_image_get_as_string(handle, field, &text) == 0, let text else { return nil }
        defer { g_free(text) }
        return String(cString: text)
    }
}
