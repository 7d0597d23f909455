import CVips

/// Lanczos resizing across, with vector instructions, as an operation of libvips' pipelines: rows are computed as they are
/// asked for, and a ``Cancellation`` stops it like any other.
///
/// The horizontal step of `resize` has no vector code in libvips 8.14, and takes most of the time of a thumbnail's resize: 55
/// of 66 ms from 2000×1500 to 1600×1200, where this takes 17. Weights are of each column's own place, not of the nearest 64th
/// of a pixel, and nothing is rounded but the result.
extension Image {
    /// Scaled by factors above 0, by `resize` or by what gives the same sooner. Nothing is computed yet.
    ///
    /// - Parameter kernel: libvips' name: `nearest`, `linear`, `cubic`, `lanczos3`.
    public func resampled(across: Double, down: Double, kernel: String) throws(VipsError) -> Image {
        guard VectorCode.isTranslated, kernel == "lanczos3", isNarrowable, across < 1, down <= 1 else {
            return try resized(across, down, kernel)
        }
        // The order of libvips: fewer rows first, which a picture that is being decoded can give one by one.
        return try (down < 1 ? resized(1, down, kernel) : self).narrowed(by: across)
    }

    /// Whether ``narrowed(by:)`` knows the pixels.
    private var isNarrowable: Bool { bands == 3 && sampleFormat == .uint8 }

    private func resized(_ across: Double, _ down: Double, _ kernel: String) throws(VipsError) -> Image {
        try Operation.call(
            "resize",
            ["in": .image(self), "scale": .double(across), "vscale": .double(down), "kernel": .string(kernel)]
        ).image()
    }

    /// Three bands of 8 bits, scaled across by a factor below 1 about the middle.
    func narrowed(by scale: Double) throws(VipsError) -> Image {
        guard let target = vips_image_new() else { throw .last(in: "narrowed") }
        let image = Image(owning: target)
        var origin: [UnsafeMutablePointer<CVips.VipsImage>?] = [handle, nil]
        guard vips_image_pipeline_array(target, VIPS_DEMAND_STYLE_FATSTRIP, &origin) == 0 else {
            throw .last(in: "narrowed")
        }
        let narrowing = Narrowing(of: handle, by: scale)
        target.pointee.Xsize = Int32(narrowing.weights.columns)
        // It goes with the picture.
        let kept = Unmanaged.passRetained(narrowing).toOpaque()
        g_object_set_data_full(
            UnsafeMutableRawPointer(target).assumingMemoryBound(to: GObject.self), "halcyon-narrowing", kept, release)
        guard vips_image_generate(target, vips_start_one, narrow, vips_stop_one, handle, kept) == 0 else {
            throw .last(in: "narrowed")
        }
        return image
    }
}

/// A picture of libvips that is being narrowed, and how. It is used and let go by libvips, on the thread of the job.
private final class Narrowing {
    private let source: UnsafeMutablePointer<CVips.VipsImage>
    let weights: LanczosWeights

    init(of source: UnsafeMutablePointer<CVips.VipsImage>, by scale: Double) {
        g_object_ref(source)
        self.source = source
        weights = LanczosWeights(of: Int(source.pointee.Xsize), by: scale)
    }

    // Whoever lets go of the narrowed picture is inside `VectorCode.alone` already.
    deinit { g_object_unref(source) }
}

private func release(_ narrowing: UnsafeMutableRawPointer?) {
    if let narrowing { Unmanaged<Narrowing>.fromOpaque(narrowing).release() }
}

/// Computes a part of the narrowed picture: libvips' generate function.
private func narrow(
    _ target: UnsafeMutablePointer<VipsRegion>?, _ sequence: UnsafeMutableRawPointer?, _: UnsafeMutableRawPointer?,
    _ narrowing: UnsafeMutableRawPointer?, _: UnsafeMutablePointer<gboolean>?
) -> Int32 {
    guard let target, let narrowing, let source = sequence?.assumingMemoryBound(to: VipsRegion.self) else { return -1 }
    let weights = Unmanaged<Narrowing>.fromOpaque(narrowing).takeUnretainedValue().weights
    let wanted = target.pointee.valid
    let columns = Int(wanted.left)..<Int(wanted.left + wanted.width)
    let needed = weights.needed(for: columns)
    var part = VipsRect(
        left: Int32(needed.lowerBound), top: wanted.top, width: Int32(needed.count), height: wanted.height)
    guard vips_region_prepare(source, &part) == 0 else { return -1 }
    let stretch = needed.count
    let line = UnsafeMutablePointer<Pixel>.allocate(capacity: 4 * stretch)
    defer { line.deallocate() }
    for row in stride(from: 0, to: Int(wanted.height), by: 4) {
        // Four rows at a time share the weights; the last of a part may be fewer, and are done twice.
        let rows = (0..<4).map { Int32(min(row + $0, Int(wanted.height) - 1)) }
        let from = rows.map { source.pointee.row(part.top + $0, from: part.left) }
        let to = rows.map { target.pointee.row(wanted.top + $0, from: wanted.left) }
        spread(from, stretch, into: line)
        weights.apply(to: line, from: needed.lowerBound, columns, into: to)
    }
    return 0
}

extension VipsRegion {
    /// Where a row of pixels of three bytes begins.
    fileprivate func row(_ y: Int32, from x: Int32) -> UnsafeMutablePointer<UInt8> {
        data + (Int(y - valid.top) * Int(bpl) + 3 * Int(x - valid.left))
    }
}
