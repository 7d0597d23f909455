import HalcyonModel
import Vips

/// Step 4, decode: the pixels of a source as its outputs take them. One pass for a single output; in memory for several.
///
/// Confined to the rendering that made it, as its pictures are.
final class DecodedImage {
    /// The picture at one resolution.
    struct Level {
        let image: Image
        /// Pixels of it for each stored pixel along the sides.
        let across: Double
        let down: Double
    }

    private struct SizedPart: Equatable {
        let frame: Int
        let part: PixelRect
        let target: PixelSize
        let quality: InterpolationQuality
    }

    private let isInMemory: Bool
    private let cancellation: Cancellation?
    private let whole: Image
    private(set) var frames: [Level] = []
    /// What was sized last: the same picture is often wanted in several formats, one after the other.
    private var last: (key: SizedPart, image: Image)?

    init(_ source: SourceImage, _ load: LoadPlan, _ cancellation: Cancellation?) throws(VipsError) {
        self.cancellation = cancellation
        isInMemory = !load.isOnePass
        let opened = try source.open(load)
        let image = isInMemory ? try opened.inMemory(cancellation) : opened
        let (across, down) =
            switch load.reduction {
            case .none: (1.0, 1.0)
            // A shrinking JPEG decoder makes a pixel of each whole 2, 4 or 8 and drops what is left over.
            case .shrink(let factor): (1 / Double(factor), 1 / Double(factor))
            case .scale:
                (
                    Double(image.width) / Double(source.rawSize.width),
                    Double(image.height) / Double(source.rawSize.height)
                )
            }
        whole = image
        for index in 0..<image.frames {
            let frame = image.frames > 1 ? try image.page(index) : image
            frames.append(Level(image: frame, across: across, down: down))
        }
    }

    /// A part of a frame at the size that an output has, computed: once for outputs that differ in what follows only.
    ///
    /// - Parameter part: in pixels of the source as stored.
    func sized(
        _ index: Int, _ part: PixelRect, to target: PixelSize, for output: OutputPlan
    ) throws(VipsError) -> Image {
        let quality = output.variant.interpolationQuality
        let key = SizedPart(frame: index, part: part, target: target, quality: quality)
        if let last, last.key == key { return last.image }
        let level = frames[index]
        let image = try level.image.resized(part, at: level, to: target, quality).inMemory(cancellation)
        if isInMemory, frames.count == 1 { last = (key, image) }
        return image
    }

    /// The frames of an output, joined to the animation that they are in the source.
    func animation(of frames: [Image]) throws(VipsError) -> Image {
        guard frames.count > 1 else { return frames[0] }
        let delays = whole.frameDelays.prefix(frames.count)
        return try .strip(
            frames, delays: delays.count == frames.count ? Array(delays) : [], loop: whole.loopCount ?? 0)
    }
}

extension Image {
    /// Step 7, colour: 8-bit sRGB, or 8-bit grey; alpha stays. It runs on the small picture, where a conversion costs
    /// little.
    ///
    /// With `keepingProfile` a picture with a profile of its own stays in its colours, unless these are inks.
    ///
    /// An embedded profile is applied unless it says sRGB; without one, four inks take libvips' own CMYK profile. A
    /// profile that does not fit the pixels is passed over, as browsers do.
    func inSRGB(keepingProfile: Bool) throws(VipsError) -> Image {
        let profile = keepingProfile ? nil : bytes(of: "icc-profile-data")
        if interpretation == .cmyk || profile.map({ !ICCProfile($0).isSRGB }) ?? false {
            // A profile that does not fit is passed over.
            if let converted = try? converted() { return converted }
        }
        switch interpretation {
        case .sRGB where sampleFormat == .uint8, .grey where sampleFormat == .uint8: return self
        case .grey, .grey16: return try calling("colourspace", ["space": "b-w"])
        default: return try calling("colourspace", ["space": "srgb"])
        }
    }

    /// Red, green and blue, where there is only grey.
    func inColour() throws(VipsError) -> Image {
        guard bands < 3 else { return self }
        return try calling("colourspace", ["space": "srgb"])
    }

    /// By profiles, to 8 bits. libvips 8.14 would cut an alpha of 16 bits off at 255 where the profile is grey: it goes by
    /// itself.
    private func converted() throws(VipsError) -> Image {
        guard hasAlpha, sampleFormat == .uint16 else { return try throughProfiles() }
        let alpha = try alpha().calling("cast", ["format": "uchar", "shift": true])
        return try Operation.call(
            "bandjoin", ["in": .images([try withoutAlpha().throughProfiles(), alpha])]
        ).image()
    }

    private func throughProfiles() throws(VipsError) -> Image {
        var arguments: [String: Value] = [
            "output-profile": "srgb", "embedded": true, "depth": 8, "intent": "relative",
        ]
        if interpretation == .cmyk { arguments["input-profile"] = "cmyk" }
        return try calling("icc_transform", arguments)
    }
}
