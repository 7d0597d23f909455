import CVips

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
