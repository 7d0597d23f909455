import CVips

/// Encoded bytes that stay where they are for as long as any pipeline may read them.
///
/// libvips decodes lazily and keeps a pointer to its input. The pointer here goes straight into the array's storage,
/// which does not move while it is alive and unchanged: this object holds it, never changes it, and every blob made of
/// it holds this object. So nothing is copied.
final class KeptBytes: Sendable {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var count: Int { bytes.count }

    /// The first byte's place, good for as long as this object lives.
    var start: UnsafeRawPointer? { bytes.withUnsafeBytes { $0.baseAddress } }

    /// A blob over the bytes, with one reference for the caller to give back with `vips_area_unref`.
    func blob() -> UnsafeMutablePointer<VipsArea> {
        let blob = vips_blob_new(releaseKeptBytes, start, bytes.count)!
        let area = UnsafeMutableRawPointer(blob).assumingMemoryBound(to: VipsArea.self)
        area.pointee.client = Unmanaged.passRetained(self).toOpaque()
        return area
    }
}

// libvips passes the area itself as the second argument of an area's free function (`vips_area_free_cb`).
private func releaseKeptBytes(_ data: UnsafeMutableRawPointer?, _ area: UnsafeMutableRawPointer?) -> Int32 {
    let area = area!.assumingMemoryBound(to: VipsArea.self)
    Unmanaged<KeptBytes>.fromOpaque(area.pointee.client).release()
    return 0
}
