import CVips

/// A value of a picture's header: a field or a piece of metadata.
public enum HeaderValue: Sendable {
    /// A whole number, such as `page-height`, `loop` and `orientation`.
    case int(Int)
    /// Whole numbers, such as `delay`.
    case ints([Int])
    /// A text.
    case text(String)
    /// A binary block, such as `exif-data`, `xmp-data`, `iptc-data` and `icc-profile-data`.
    case bytes([UInt8])
}

extension HeaderValue: ExpressibleByIntegerLiteral {
    /// A whole number.
    public init(integerLiteral value: Int) { self = .int(value) }
}

extension Image {
    /// The same pixels with these header fields set, others as they are. This picture does not change.
    ///
    /// - Parameter header: by libvips' names.
    /// - Throws: ``VipsError``.
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

    /// The same pixels without these header fields, where they are there. This picture does not change.
    ///
    /// - Throws: ``VipsError``.
    public func without(fields: some Collection<String>) throws(VipsError) -> Image {
        guard fields.contains(where: has(field:)) else { return self }
        return try editing { copy in
            for field in fields { vips_image_remove(copy, field) }
        }
    }

    // Headers may be shared between pipelines: only a copy that nobody else has may be changed.
    private func editing(_ change: (UnsafeMutablePointer<CVips.VipsImage>) -> Void) throws(VipsError) -> Image {
        let copy = try Operation.call("copy", ["in": .image(self)]).image()
        change(copy.handle)
        return copy
    }
}

/// Frames and pages: libvips stacks them, each ``pageHeight`` pixels high, into one tall picture, a strip.
extension Image {
    /// Frames or pages in the file; 1 where the format has none. How many of them were loaded, ``frames`` tells.
    public var pages: Int {
        // vips_image_get_n_pages takes 10,000 and more for nonsense, and says 1.
        var count: Int32 = 0
        guard has(field: "n-pages"), vips_image_get_int(handle, "n-pages", &count) == 0 else {
            vips_error_clear()
            return 1
        }
        return max(1, Int(count))
    }

    /// Pixels down each frame of a strip; ``height`` for a single picture.
    public var pageHeight: Int { Int(vips_image_get_page_height(handle)) }

    /// Frames in this picture, one above the other.
    public var frames: Int { height / pageHeight }

    /// How long each frame of the file is shown, in milliseconds; empty where nothing is said.
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

    /// How often an animation is played, 0 for without end; nil where nothing is said.
    public var loopCount: Int? {
        var count: Int32 = 0
        guard has(field: "loop"), vips_image_get_int(handle, "loop", &count) == 0 else {
            vips_error_clear()
            return nil
        }
        return Int(count)
    }

    /// One frame of a strip, as a still picture. Nothing is computed. Where the strip was opened with sequential
    /// access, frames can be computed in their order alone.
    ///
    /// - Throws: ``VipsError`` of code `misuse` for an index outside `0..<frames`.
    public func page(_ index: Int) throws(VipsError) -> Image {
        guard (0..<frames).contains(index) else {
            throw VipsError(.misuse, "extract_area", "there is no frame \(index) among \(frames)")
        }
        return try cropped(0, index * pageHeight, width, pageHeight)
            .without(fields: ["page-height", "n-pages", "delay", "loop"])
    }

    /// Frames joined into a strip, the first on top, which GIF and WebP save as an animation. The metadata is that of
    /// the first.
    ///
    /// - Parameters:
    ///   - delays: how long each frame is shown, in milliseconds; none when it is not to be said.
    ///   - loop: how often it is played, 0 for without end.
    /// - Throws: ``VipsError`` of code `misuse` when there are no frames, when their sizes differ, or when there is
    ///   neither one delay for each nor none.
    public static func strip(_ frames: [Image], delays: [Int] = [], loop: Int = 0) throws(VipsError) -> Image {
        guard let first = frames.first else { throw VipsError(.misuse, "arrayjoin", "there are no frames") }
        guard frames.allSatisfy({ $0.width == first.width && $0.height == first.height }) else {
            throw VipsError(.misuse, "arrayjoin", "the frames are not of one size")
        }
        guard delays.isEmpty || delays.count == frames.count else {
            throw VipsError(.misuse, "arrayjoin", "\(delays.count) delays do not fit \(frames.count) frames")
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

    /// Whether the field or metadata is there.
    public func has(field name: String) -> Bool { vips_image_get_typeof(handle, name) != 0 }

    /// A copy of a binary field, such as `icc-profile-data` or `exif-data`; nil when there is none.
    public func bytes(of field: String) -> [UInt8]? {
        guard vips_image_get_typeof(handle, field) == cvips_type_blob() else { return nil }
        var data: UnsafeRawPointer?
        var size = 0
        guard vips_image_get_blob(handle, field, &data, &size) == 0, let data else { return nil }
        return Array(UnsafeRawBufferPointer(start: data, count: size))
    }

    /// A field as text, whatever its type; nil when there is none.
    public func text(of field: String) -> String? {
        guard has(field: field) else { return nil }
        var text: UnsafeMutablePointer<CChar>?
        guard vips_image_get_as_string(handle, field, &text) == 0, let text else { return nil }
        defer { g_free(text) }
        return String(cString: text)
    }
}
