import CVips

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
