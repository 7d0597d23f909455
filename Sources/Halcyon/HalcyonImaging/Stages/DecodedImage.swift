import HalcyonModel
import Vips

/// Step 4, decode: the pixels of a source as its outputs need them. A single pass for one output; in memory for
/// several.
///
/// Confined to the rendering that created it, as are its images.
final class DecodedImage {
    /// The image at one resolution.
    struct Level {
        let image: Image
        /// The number of pixels per stored pixel along each side.
        let across: Double
        let down: Double
    }

    private struct SizedPart: Equatable {
        let frame: Int
        let part: PixelRect
        let target: PixelSize
        let quality: InterpolationQuality
        let linearLight: Bool
        /// True if linear light retains the color space of the source. Without it, colors are converted later.
        let keepsProfile: Bool
    }

    private let isInMemory: Bool
    /// The index of the first frame in the file.
    private let firstFrame: Int
    private let cancellation: Cancellation?
    private let whole: Image
    private(set) var frames: [Level] = []
    /// The image that was resized last. The same image is often needed in several formats in succession.
    private var last: (key: SizedPart, image: Image)?

    init(_ source: SourceImage, _ load: LoadPlan, _ cancellation: Cancellation?) throws(VipsError) {
        self.cancellation = cancellation
        firstFrame = source.page - 1
        isInMemory = !load.isOnePass
        let opened = try source.open(load)
        let image = isInMemory ? try opened.inMemory(cancellation) : opened
        let (across, down) =
            switch load.reduction {
            case .none: (1.0, 1.0)
            // The JPEG decoder combines each whole block of 2, 4 or 8 pixels and drops the remainder.
            case .shrink(let factor): (1 / Double(factor), 1 / Double(factor))
            case .scale:
                (
                    Double(image.width) / Double(source.storedSize.width),
                    Double(image.height) / Double(source.storedSize.height)
                )
            }
        let x = Double(source.storedSize.width) / Double(source.rawSize.width)
        let y = Double(source.storedSize.height) / Double(source.rawSize.height)
        whole = image
        for index in 0..<image.frames {
            frames.append(Level(image: try image.page(index), across: across * x, down: down * y))
        }
    }

    /// Creates an upright image from the frames that the processors before sizing have produced.
    /// - Parameter whole: The decoded source, which has the timing of an animation.
    private init(frames: [Image], of whole: Image, from firstFrame: Int, _ cancellation: Cancellation?) {
        isInMemory = true
        self.firstFrame = firstFrame
        self.cancellation = cancellation
        self.whole = whole
        self.frames = frames.map { Level(image: $0, across: 1, down: 1) }
    }

    /// Returns the image after the processors that precede sizing.
    /// - Throws: ``JobError``, `VipsError`, `CancellationError`.
    func processed(
        for output: OutputPlan, with assets: ProcessingAssets, _ extensions: Extensions, _ faces: [DetectedBox]? = nil
    ) throws -> DecodedImage {
        let variant = output.variant
        let processed = try frames.prefix(output.frames).map { level in
            try level.image.inSRGB(keepingProfile: variant.output.keepProfile).turned(
                Orientation(exif: whole.orientation)
            )
            .processed(
                by: variant.before, with: assets, extensions, quality: variant.interpolationQuality, faces: faces,
                cancellation
            )
            .inMemory(cancellation)
        }
        return DecodedImage(frames: processed, of: whole, from: firstFrame, cancellation)
    }

    /// Returns the part of the upright picture without the margins that are found in all frames of the output: a
    /// part of its crop. If everything is margin, nothing is removed.
    func content(for output: OutputPlan, without trim: Trim) throws -> PixelRect {
        let crop = try output.variant.sizing.crop(of: output.inputSize)
        let part = output.orientation.stored(crop, in: output.inputSize)
        var found: (x: Range<Int>, y: Range<Int>)?
        for level in frames.prefix(output.frames) {
            let picture = try level.image.cropped(part.x, part.y, part.width, part.height)
                .inSRGB(keepingProfile: false).turned(output.orientation).inMemory(cancellation)
            guard let content = try picture.content(without: trim) else { continue }
            found = found.map { ($0.x.union(content.x), $0.y.union(content.y)) } ?? content
        }
        guard let found else { return crop }
        return PixelRect(
            x: crop.x + found.x.lowerBound, y: crop.y + found.y.lowerBound, width: found.x.count,
            height: found.y.count)
    }

    /// Returns a part of a frame at the size of an output, computed once for outputs that differ only in later steps.
    ///
    /// - Parameter part: The part in pixels of the source as stored.
    func sized(
        _ index: Int, _ part: PixelRect, to target: PixelSize, for output: OutputPlan
    ) throws(VipsError) -> Image {
        let variant = output.variant
        let key = SizedPart(
            frame: index, part: part, target: target, quality: variant.interpolationQuality,
            linearLight: variant.linearLight, keepsProfile: variant.linearLight && variant.output.keepProfile)
        if let last, last.key == key { return last.image }
        let level = frames[index]
        let image = try level.image.resized(
            part, at: level, to: target, key.quality,
            linearLight: key.linearLight, keepingProfile: key.keepsProfile
        ).inMemory(cancellation)
        if isInMemory, frames.count == 1 { last = (key, image) }
        return image
    }

    /// Joins the frames of an output to an animation with the timing of the source.
    func animation(of frames: [Image]) throws(VipsError) -> Image {
        guard frames.count > 1 else { return frames[0] }
        let delays = whole.frameDelays.dropFirst(firstFrame).prefix(frames.count)
        return try .strip(
            frames, delays: delays.count == frames.count ? Array(delays) : [], loop: whole.loopCount ?? 0)
    }
}

extension Image {
    /// Step 7, color: converts to 8-bit sRGB or 8-bit grey and retains alpha. It runs on the resized image, where a
    /// conversion is cheap.
    ///
    /// With `keepingProfile`, an image with an embedded profile keeps its color space, unless it is CMYK.
    ///
    /// With `target`, colors are converted to that profile instead, which is embedded in the file. Gray stays the same,
    /// because the profiles have the white point and the transfer curve of sRGB.
    ///
    /// An embedded profile is applied unless it is sRGB. CMYK without a profile uses libvips' built-in CMYK profile. A
    /// profile that does not match the pixels is ignored, as in browsers.
    func inSRGB(keepingProfile: Bool, as target: OutputProfile? = nil) throws(VipsError) -> Image {
        if let target { return try inProfile(target) }
        let profile = keepingProfile ? nil : bytes(of: "icc-profile-data")
        if interpretation == .cmyk || profile.map({ !ICCProfile($0).isSRGB }) ?? false {
            // A profile that does not match is ignored.
            if let converted = try? converted() { return converted }
        }
        switch interpretation {
        case .sRGB where sampleFormat == .uint8, .grey where sampleFormat == .uint8: return self
        case .grey, .grey16: return try calling("colourspace", ["space": "b-w"])
        default: return try calling("colourspace", ["space": "srgb"])
        }
    }

    /// Step 7 as an output requests it.
    func inSRGB(for output: OutputOptions) throws(VipsError) -> Image {
        output.bitDepth == nil
            ? try inSRGB(keepingProfile: output.keepProfile, as: output.profile)
            : try inDeepSRGB(keepingProfile: output.keepProfile, as: output.profile)
    }

    /// Step 7 for outputs of more than 8 bits: converts to 16-bit sRGB or 16-bit gray, by the same rules. Samples of 8
    /// bits are spread over the whole range.
    func inDeepSRGB(keepingProfile: Bool, as target: OutputProfile? = nil) throws(VipsError) -> Image {
        let profile = keepingProfile ? nil : bytes(of: "icc-profile-data")
        let isForeign = interpretation == .cmyk || profile.map { !ICCProfile($0).isSRGB } ?? false
        if isForeign || target != nil && channels >= 3 {
            // A profile that does not match is ignored.
            if let colors = try? withoutAlpha().throughProfiles(to: target?.rawValue ?? "srgb", depth: 16) {
                return hasAlpha ? try colors.joined(with: alpha().widened()) : colors
            }
        }
        switch (interpretation, sampleFormat) {
        case (.rgb16, .uint16), (.grey16, .uint16): return self
        case (.sRGB, .uint8), (.grey, .uint8):
            return try widened().calling("copy", ["interpretation": interpretation == .grey ? "grey16" : "rgb16"])
        case (.grey, _), (.grey16, _): return try calling("colourspace", ["space": "grey16"])
        default: return try calling("colourspace", ["space": "rgb16"])
        }
    }

    /// Converts 8-bit samples to 16 bits.
    private func widened() throws(VipsError) -> Image {
        guard sampleFormat == .uint8 else { return self }
        return try calling("linear", ["a": [257], "b": [0]]).calling("cast", ["format": "ushort"])
    }

    private func inProfile(_ target: OutputProfile) throws(VipsError) -> Image {
        if interpretation == .cmyk || bytes(of: "icc-profile-data") != nil, bands - (hasAlpha ? 1 : 0) >= 3 {
            // A profile that does not match is ignored.
            if let converted = try? converted(to: target.rawValue) { return converted }
        }
        let plain = try inSRGB(keepingProfile: false).without(fields: ["icc-profile-data"])
        return plain.bands < 3 ? plain : try plain.converted(to: target.rawValue)
    }

    /// Converts grey to red, green and blue.
    func inColour() throws(VipsError) -> Image {
        guard bands < 3 else { return self }
        return try calling("colourspace", ["space": sampleFormat == .uint16 ? "rgb16" : "srgb"])
    }

    /// Converts by profiles to 8 bits. libvips 8.14 would clip a 16-bit alpha at 255 if the profile is grey, so alpha
    /// is converted separately.
    private func converted(to output: String = "srgb") throws(VipsError) -> Image {
        guard hasAlpha, sampleFormat == .uint16 else { return try throughProfiles(to: output) }
        let alpha = try alpha().calling("cast", ["format": "uchar", "shift": true])
        return try Operation.call(
            "bandjoin", ["in": .images([try withoutAlpha().throughProfiles(to: output), alpha])]
        ).image()
    }

    private func throughProfiles(to output: String, depth: Int = 8) throws(VipsError) -> Image {
        var arguments: [String: Value] = [
            "output-profile": .string(output), "embedded": true, "depth": .int(depth), "intent": "relative",
        ]
        if interpretation == .cmyk { arguments["input-profile"] = "cmyk" }
        if interpretation == .sRGB, bytes(of: "icc-profile-data") == nil { arguments["input-profile"] = "srgb" }
        return try calling("icc_transform", arguments)
    }
}

extension Image {
    /// Returns the columns and rows between the margins of an upright sRGB or gray picture; nil if everything is
    /// margin.
    ///
    /// A pixel belongs to a margin if no channel differs from the background by more than the tolerance. Colors are
    /// premultiplied, so that all transparent pixels are equal.
    func content(without trim: Trim) throws(VipsError) -> (x: Range<Int>, y: Range<Int>)? {
        var picture = self
        let corner: [Double]
        if let background = trim.background {
            picture = try ready(for: background)
            if !background.isOpaque { picture = try picture.withAlpha() }
            corner = picture.samples(of: background)
        } else {
            corner = try samples(x: 0, y: 0)
        }
        let opacity = picture.hasAlpha ? (corner.last ?? 255) / 255 : 1
        let expected = corner.enumerated().map { index, sample in
            index < picture.channels ? sample * opacity : sample
        }
        let premultiplied = picture.hasAlpha ? try picture.calling("premultiply") : picture
        let differs = try premultiplied.calling("linear", ["a": [1], "b": .doubles(expected.map { -$0 })])
            .calling("abs")
            .calling("relational_const", ["relational": "more", "c": .doubles([Double(trim.tolerance)])])
            .calling("bandbool", ["boolean": "or"])
        let sums = try Operation.call("project", ["in": .image(differs)])
        func span(_ sums: Image, across length: Int) throws(VipsError) -> Range<Int>? {
            let counts = try sums.pixels().withUnsafeBytes { Array($0.bindMemory(to: UInt32.self)) }
            let allowed = trim.fuzz * Double(length) * 255
            guard let first = counts.firstIndex(where: { Double($0) > allowed }),
                let last = counts.lastIndex(where: { Double($0) > allowed })
            else { return nil }
            return first..<last + 1
        }
        guard let columns = try span(sums.image("columns"), across: height),
            let rows = try span(sums.image("rows"), across: width)
        else { return nil }
        return (columns, rows)
    }
}

extension Range<Int> {
    /// Returns the smallest range that contains both.
    fileprivate func union(_ other: Range<Int>) -> Range<Int> {
        Swift.min(lowerBound, other.lowerBound)..<Swift.max(upperBound, other.upperBound)
    }
}
