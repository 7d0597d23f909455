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
