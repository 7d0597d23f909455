import Vips

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
