import Formats
import HalcyonCoding
import HalcyonModel
import Hashing
import JSON

/// A URL of imgproxy: `/SIGNATURE/OPTION:ARGUMENT:…/…/plain/SOURCE@EXTENSION` or `/…/BASE64.EXTENSION`. A value.
///
/// It is built from the public documentation of imgproxy 3. docs/compatible-urls.md lists the options that are the
/// same, close and missing.
struct ImgproxyURL {
    static let grammar = "imgproxy"

    /// The job.
    let draft: JobBuilder
    /// The qualities of the formats if ``draft`` has none.
    let qualities: FormatQualities?
    /// The last second since 1970 at which the URL is valid; nil if it does not expire.
    let expires: Int64?
    /// The file name and the disposition that the response declares; nil for none.
    let disposition: ContentDisposition?

    /// Verifies the signature of a path and returns the rest of it, which begins with `/`.
    /// - Parameter path: the path behind the prefix, without its leading `/`, as it was sent.
    /// - Throws: ``Problem`` of the kind `forbidden`.
    static func verify(_ path: Substring, _ options: ImgproxyURLOptions) throws(Problem) -> String {
        let mark = path.firstIndex(of: "/") ?? path.endIndex
        let rest = restored(path[mark...])
        if options.keys.isEmpty, options.allowsUnsigned { return rest }
        guard let code = Base64.decode(urlSafe: path[..<mark]), !code.isEmpty else {
            throw Problem(.forbidden, "imgproxy: the URL does not begin with a signature in base64url")
        }
        var isValid = false
        for pair in options.keys {
            let expected = HMACAlgorithm.sha256.code(of: pair.salt + Array(rest.utf8), key: pair.key)
            if Array(expected.prefix(options.signatureSize)).isSame(inConstantTimeAs: code) { isValid = true }
        }
        guard isValid else { throw Problem(.forbidden, "imgproxy: the signature of the URL is invalid") }
        return rest
    }

    /// Returns a path whose plain source has the double slash that a proxy merged into one.
    private static func restored(_ path: Substring) -> String {
        guard let start = path.firstRange(of: "/plain/")?.upperBound else { return String(path) }
        for scheme in ["http:/", "https:/", "s3:/"] where path[start...].hasPrefix(scheme) {
            let source = path[start...].dropFirst(scheme.count)
            return source.hasPrefix("/") ? String(path) : "\(path[..<start])\(scheme)/\(source)"
        }
        return String(path)
    }

    /// Parses a path whose signature has been verified.
    /// - Parameter path: the path behind the signature, as it was sent, with its leading `/`.
    /// - Throws: ``Problem`` that names the option.
    init(_ path: String, _ options: ImgproxyURLOptions) throws(Problem) {
        var rest = path.dropFirst()[...]
        var settings = ImgproxySettings(options)
        try settings.apply(preset: "default", of: options, isRequired: false)
        if options.onlyPresets {
            for name in Self.segment(&rest).split(separator: ":") {
                try settings.apply(preset: String(name), of: options)
            }
        }
        var source = ""
        while true {
            let start = rest
            let part = Self.segment(&rest)
            if part == "plain" {
                source = try Self.plain(rest, &settings)
                break
            }
            if part == "enc" { throw Problem(.badRequest, "imgproxy: encrypted sources (enc) are not supported") }
            guard part.contains(":"), !options.onlyPresets else {
                source = try Self.encoded(start, &settings)
                break
            }
            try settings.apply(Self.option(part), of: options)
        }
        let url = try SourceURL.source(source, base: options.baseURL, scheme: nil, in: Self.grammar)
        draft = try settings.draft(of: url, options)
        qualities = settings.preset == nil ? settings.qualities : nil
        expires = settings.expires
        disposition = settings.disposition(of: url)
    }

    /// Removes and returns the text up to the next slash.
    private static func segment(_ rest: inout Substring) -> Substring {
        let end = rest.firstIndex(of: "/") ?? rest.endIndex
        defer { rest = rest[end...].dropFirst() }
        return rest[..<end]
    }

    /// Parses `NAME:ARGUMENT:…`.
    static func option(_ text: Substring) -> URLOption {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { String($0) }
        return URLOption(grammar: grammar, name: parts[0], arguments: Array(parts.dropFirst()), text: String(text))
    }

    private static func plain(_ text: Substring, _ settings: inout ImgproxySettings) throws(Problem) -> String {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        guard parts.count <= 2 else {
            throw Problem(.badRequest, "imgproxy: more than one @ in a plain source; write %40 for those of its URL")
        }
        if parts.count == 2 { try settings.setExtension(parts[1]) }
        guard let source = PercentEncoding.decode(parts.first ?? "") else {
            throw Problem(.badRequest, "imgproxy: malformed percent-encoding in the source")
        }
        return source
    }

    private static func encoded(_ text: Substring, _ settings: inout ImgproxySettings) throws(Problem) -> String {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2 else { throw Problem(.badRequest, "imgproxy: more than one . in an encoded source") }
        if parts.count == 2 { try settings.setExtension(parts[1]) }
        guard let bytes = Base64.decode(urlSafe: (parts.first ?? "").filter { $0 != "/" }),
            let source = String(validating: bytes, as: UTF8.self)
        else { throw Problem(.badRequest, "imgproxy: the source is neither plain/URL nor a URL in base64url") }
        return source
    }

}

extension ImgproxyURLOptions {
    /// The name of a preset that is invalid, and the reason; nil if all are valid.
    var presetMistake: (name: String, reason: String)? {
        for name in presets.keys.sorted() {
            var settings = ImgproxySettings(self)
            do throws(Problem) {
                try settings.apply(preset: name, of: self)
            } catch {
                return (name, error.detail)
            }
        }
        return nil
    }
}

/// The processing options of an imgproxy URL, in the order of its pipeline.
struct ImgproxySettings {
    private var job = CompatibleJob()
    private var type = "fit"
    private var (zoom, dpr) = (1.0, 1.0)
    private var extends = false
    private var extendsAspectRatio = false
    private var crop: (width: Double, height: Double, gravity: Position?, option: URLOption)?
    private var gravity = Position()
    private var background: CSSColor?
    private var backgroundAlpha = 1.0
    private var (brightness, contrast, saturation) = (0.0, 1.0, 1.0)
    private var overlay: (opacity: Double, color: CSSColor) = (0, .black)
    private var (blur, sharpen, pixelate) = (0.0, 0.0, 0.0)
    private var trim: (option: URLOption, parameters: [(String, any CompatibleValue)])?
    /// The lengths that are added to the top, right, bottom and left side.
    private var padding = [0.0, 0, 0, 0]
    private var watermark: URLOption?
    private var watermarkURL: String?
    private var fileName: String?
    private var isAttachment = false
    private var applied: [String] = []
    private(set) var qualities: FormatQualities
    private(set) var expires: Int64?
    /// The preset of Halcyon.
    private(set) var preset: String?

    init(_ options: ImgproxyURLOptions) {
        qualities = FormatQualities(standard: options.quality, byFormat: options.formatQualities)
    }

    /// A gravity with its offsets.
    private struct Position {
        var gravity = CompatibleJob.Gravity.center
        var x = 0.0
        var y = 0.0

        var isShifted: Bool { x != 0 || y != 0 }
    }

    /// Applies the options of a preset.
    /// - Parameter isRequired: true if an unknown name is that of a preset of Halcyon.
    mutating func apply(preset name: String, of options: ImgproxyURLOptions, isRequired: Bool = true) throws(Problem) {
        guard let text = options.presets[name] else {
            guard isRequired else { return }
            guard preset == nil || preset == name else {
                throw Problem(.badRequest, "imgproxy: preset:\(name): a job has only one preset of Halcyon")
            }
            preset = name
            return
        }
        guard !applied.contains(name) else {
            throw Problem(.badRequest, "imgproxy: preset:\(name): the preset includes itself")
        }
        applied.append(name)
        defer { applied.removeLast() }
        for part in text.split(separator: "/") { try apply(ImgproxyURL.option(part), of: options) }
    }

    /// Applies an option. Later options override earlier ones.
    /// - Throws: ``Problem`` that names it.
    mutating func apply(_ option: URLOption, of options: ImgproxyURLOptions) throws(Problem) {
        if try size(option) { return }
        if try effect(option) { return }
        if try encode(option) { return }
        switch option.name {
        case "preset", "pr":
            for name in option.arguments where !name.isEmpty { try apply(preset: name, of: options) }
        case "cachebuster", "cb": break
        case "expires", "exp":
            try option.allow(0...1)
            expires = try option.whole(0, in: 0...Int(Int32.max) * 1000).map { Int64($0) }
        case "filename", "fn":
            try option.allow(1...2)
            fileName = try name(option)
        case "return_attachment", "att": isAttachment = try flag(option)
        case "fallback_image_url", "fiu":
            try option.allow(1...1)
            job.fields.set("fallback", try url(option, options))
        case "watermark_url", "wmu":
            try option.allow(0...1)
            watermarkURL = option.count == 0 ? nil : try url(option, options)
        case "watermark", "wm":
            try option.allow(0...5)
            watermark = (try option.number(0, in: 0...1) ?? 0) > 0 ? option : nil
        // Options that are accepted with the value that changes nothing.
        case "enforce_thumbnail", "eth", "keep_copyright", "kcr", "raw":
            if try flag(option) { throw option.unsupported() }
        case "auto_rotate", "ar": if try !flag(option) { throw option.unsupported("images are always auto-rotated") }
        case "page", "pg":
            try option.allow(1...1)
            // Pages are counted from 0.
            let page = try option.whole(0, in: 0...65_534) ?? 0
            job.fields["page"] = page > 0 ? (page + 1).json : nil
        case "dpi", "min-width", "min_width", "mw", "min-height", "min_height", "mh":
            if try option.whole(0, in: 0...Int.max) ?? 0 != 0 { throw option.unsupported() }
        case "trim", "t": try setTrim(option)
        case "padding", "pd":
            try option.allow(0...4)
            // As in CSS, a missing side is that opposite of it.
            let sides = try (0..<4).map { index throws(Problem) in
                try option.number(index, in: 0...CompatibleJob.longestSide)
            }
            let top = sides[0] ?? 0
            let right = sides[1] ?? top
            padding = [top, right, sides[2] ?? top, sides[3] ?? right]
        case "max_src_resolution", "msr", "max_src_file_size", "msfs", "max_animation_frames", "maf",
            "max_animation_frame_resolution", "mafr", "max_result_dimension", "mrd":
            throw option.unsupported("the limits of Halcyon are settings of its workers")
        default: throw option.unsupported()
        }
    }

    /// Applies `THRESHOLD:COLOR:EQUAL_HORIZONTALLY:EQUAL_VERTICALLY`.
    private mutating func setTrim(_ option: URLOption) throws(Problem) {
        try option.allow(0...4)
        guard let threshold = try option.number(0, in: 0...254) else {
            trim = nil
            return
        }
        for index in 2..<4 where option[index] != nil {
            if try flag(option, index) { throw option.unsupported("each margin is removed as far as it reaches") }
        }
        var parameters: [(String, any CompatibleValue)] = [("tolerance", threshold.rounded())]
        if let text = option[1] {
            guard let color = URLOption.color(hexadecimal: text) else { throw option.invalid("a color such as ffffff") }
            parameters.append(("background", color.hexadecimal))
        }
        trim = (option, parameters)
    }

    // MARK: Size

    /// Applies an option of the size and returns true, or returns false for another option.
    private mutating func size(_ option: URLOption) throws(Problem) -> Bool {
        switch option.name {
        case "resize", "rs":
            if let value = option[0] { try set(type: value, option) }
            try setSize(option.dropping(1))
        case "size", "s": try setSize(option)
        case "resizing_type", "rt":
            try option.allow(1...1)
            try set(type: option[0] ?? "", option)
        case "width", "w":
            try option.allow(0...1)
            job.width = try side(option, 0) ?? 0
        case "height", "h":
            try option.allow(0...1)
            job.height = try side(option, 0) ?? 0
        case "zoom", "z":
            try option.allow(1...2)
            let (x, y) = (try factor(option, 0), try factor(option, 1))
            guard x == y ?? x else { throw option.unsupported("both factors must be equal") }
            zoom = x ?? 1
        case "dpr":
            try option.allow(1...1)
            dpr = try factor(option, 0) ?? 1
        case "enlarge", "el": job.enlarges = try flag(option)
        case "extend", "ex": try setExtend(option)
        case "extend_aspect_ratio", "extend_ar", "exar":
            extendsAspectRatio = try flag(option, 0)
            try checkCentered(option.dropping(1), option)
        case "gravity", "g": gravity = try position(option)
        case "crop", "c":
            let size = (try cropSide(option, 0) ?? 0, try cropSide(option, 1) ?? 0)
            let rest = option.dropping(2)
            crop = size == (0, 0) ? nil : (size.0, size.1, rest.count > 0 ? try position(rest) : nil, option)
        case "rotate", "rot":
            try option.allow(0...1)
            let angle = try option.whole(0, in: -3600...3600) ?? 0
            guard angle.isMultiple(of: 90) else { throw option.invalid("a multiple of 90") }
            job.quarterTurns = (angle / 90 % 4 + 4) % 4
        default: return false
        }
        return true
    }

    private mutating func set(type: String, _ option: URLOption) throws(Problem) {
        guard type != "auto" else { throw option.unsupported("the type would depend on the size of the source") }
        guard ["fit", "fill", "fill-down", "force"].contains(type) else {
            throw option.invalid("fit, fill, fill-down or force")
        }
        self.type = type
    }

    /// Applies `WIDTH:HEIGHT:ENLARGE:EXTEND:GRAVITY`.
    private mutating func setSize(_ option: URLOption) throws(Problem) {
        if let width = try side(option, 0) { job.width = width }
        if let height = try side(option, 1) { job.height = height }
        if option[2] != nil { job.enlarges = try flag(option, 2) }
        if option[3] != nil { try setExtend(option.dropping(3)) }
    }

    private mutating func setExtend(_ option: URLOption) throws(Problem) {
        extends = try flag(option, 0)
        try checkCentered(option.dropping(1), option)
    }

    private func checkCentered(_ gravity: URLOption, _ option: URLOption) throws(Problem) {
        guard gravity.count > 0 else { return }
        let position = try position(gravity)
        guard position.gravity == .center, !position.isShifted else {
            throw option.unsupported("the image can only be in the center")
        }
    }

    private func side(_ option: URLOption, _ index: Int) throws(Problem) -> Double? {
        try option.whole(index, in: 0...Int(CompatibleJob.longestSide)).map { Double($0) }
    }

    private func factor(_ option: URLOption, _ index: Int) throws(Problem) -> Double? {
        guard let factor = try option.number(index, in: 0...100) else { return nil }
        guard factor > 0 else { throw option.invalid("a number above 0") }
        return factor
    }

    /// A side of at least 1 is in whole pixels.
    private func cropSide(_ option: URLOption, _ index: Int) throws(Problem) -> Double? {
        try option.number(index, in: 0...CompatibleJob.longestSide).map { $0 >= 1 ? $0.rounded(.down) : $0 }
    }

    private func position(_ option: URLOption) throws(Problem) -> Position {
        let type = option[0] ?? ""
        switch type {
        case "sm":
            try option.allow(1...1)
            return Position(gravity: .attention)
        case "fp":
            try option.allow(3...3)
            let (x, y) = (try option.number(1, in: 0...1) ?? 0.5, try option.number(2, in: 0...1) ?? 0.5)
            return Position(gravity: .point(x: x, y: y))
        case "obj":
            let classes = (1..<option.count).compactMap { option[$0] }
            guard classes.isEmpty || classes == ["all"] || classes == ["face"] else {
                throw option.unsupported("only the classes face and all are detected")
            }
            return Position(gravity: .detected(classes == ["face"] ? "faces" : "objects"))
        case "objw": throw option.unsupported("classes of objects have no weights")
        default:
            guard let (x, y) = Self.edges[type] else {
                throw option.invalid("a gravity such as ce, no, soea, sm or fp:0.5:0.5")
            }
            try option.allow(1...3)
            let range = -CompatibleJob.longestSide...CompatibleJob.longestSide
            return Position(
                gravity: .edge(x: x, y: y), x: try option.number(1, in: range) ?? 0,
                y: try option.number(2, in: range) ?? 0)
        }
    }

    static let edges: [String: (x: Double, y: Double)] = [
        "ce": (0.5, 0.5), "no": (0.5, 0), "so": (0.5, 1), "ea": (1, 0.5), "we": (0, 0.5), "noea": (1, 0),
        "nowe": (0, 0), "soea": (1, 1), "sowe": (0, 1),
    ]

    // MARK: Effects

    /// Applies an option that changes colors or sharpness and returns true, or returns false for another option.
    private mutating func effect(_ option: URLOption) throws(Problem) -> Bool {
        switch option.name {
        case "background", "bg": background = try color(option)
        case "background_alpha", "bga":
            try option.allow(1...1)
            backgroundAlpha = try option.number(0, in: 0...1) ?? 1
        case "adjust", "a":
            try option.allow(1...3)
            if let value = try option.whole(0, in: -255...255) { brightness = Double(value) / 255 }
            if let value = try option.number(1, in: 0...4) { contrast = value }
            if let value = try option.number(2, in: 0...4) { saturation = value }
        case "brightness", "br":
            try option.allow(1...1)
            brightness = Double(try option.whole(0, in: -255...255) ?? 0) / 255
        case "contrast", "co":
            try option.allow(1...1)
            contrast = try option.number(0, in: 0...4) ?? 1
        case "saturation", "sa":
            try option.allow(1...1)
            saturation = try option.number(0, in: 0...4) ?? 1
        case "blur", "bl":
            try option.allow(0...1)
            blur = try option.number(0, in: 0...250) ?? 0
        case "sharpen", "sh":
            try option.allow(0...1)
            sharpen = try option.number(0, in: 0...10) ?? 0
            guard sharpen == 0 || sharpen >= 0.1 else { throw option.invalid("0 or a number from 0.1 to 10") }
        case "pixelate", "pix":
            try option.allow(0...1)
            pixelate = try side(option, 0) ?? 0
        case "colorize", "col":
            try option.allow(1...3)
            overlay.opacity = try option.number(0, in: 0...1) ?? 0
            if let text = option[1] {
                guard let color = URLOption.color(hexadecimal: text) else {
                    throw option.invalid("a color such as 08f")
                }
                overlay.color = color
            }
        default: return false
        }
        return true
    }

    /// Parses `RED:GREEN:BLUE` or hexadecimal digits; nil without arguments.
    private func color(_ option: URLOption) throws(Problem) -> CSSColor? {
        switch option.count {
        case 0: return nil
        case 1:
            guard let color = URLOption.color(hexadecimal: option[0] ?? "") else {
                throw option.invalid("a color such as ffcc00, or 255:204:0")
            }
            return color
        default:
            try option.allow(3...3)
            var channels: [UInt8] = []
            for index in 0..<3 { channels.append(UInt8(try option.whole(index, in: 0...255) ?? 0)) }
            return CSSColor(red: channels[0], green: channels[1], blue: channels[2])
        }
    }

    // MARK: Encoding

    /// Applies an option of the encoder and returns true, or returns false for another option.
    private mutating func encode(_ option: URLOption) throws(Problem) -> Bool {
        switch option.name {
        case "quality", "q":
            try option.allow(0...1)
            let quality = try option.whole(0, in: 0...100) ?? 0
            job.fields["quality"] = quality > 0 ? quality.json : nil
        case "max_bytes", "mb":
            try option.allow(1...1)
            job.fields["maximumBytes"] = try option.whole(0, in: 0...(1 << 30)).flatMap { $0 > 0 ? $0.json : nil }
        case "autoquality", "aq": try searchQuality(option)
        case "format_quality", "fq":
            guard option.count > 0, option.count.isMultiple(of: 2) else {
                throw option.invalid("formats, each with its quality, such as jpeg:80:webp:75")
            }
            for index in stride(from: 0, to: option.count, by: 2) {
                let format = try format(option[index] ?? "", option)
                qualities.byFormat[format] = try option.whole(index + 1, in: 1...100)
            }
        case "format", "f", "ext":
            try option.allow(1...1)
            job.fields.set("format", try format(option[0] ?? "", option).rawValue)
        case "strip_metadata", "sm":
            job.fields["stripMetadata"] = try flag(option) ? nil : false.json
        case "strip_color_profile", "scp":
            job.fields["keepProfile"] = try flag(option) ? nil : true.json
        case "disable_animation", "da":
            job.fields["frames"] = try flag(option) ? 1.json : nil
        case "jpeg_options", "jpgo":
            guard option.count <= 2 else { throw option.unsupported("only its first two arguments have a counterpart") }
            job.fields["progressive"] = try isOn(option, 0) ? true.json : nil
            job.fields["chromaSubsampling"] = try isOn(option, 1) ? "4:4:4".json : nil
        case "png_options", "pngo":
            try option.allow(0...3)
            job.fields["progressive"] = try isOn(option, 0) ? true.json : nil
            let colors = try option.whole(2, in: 2...256) ?? 256
            guard Quantization.sizes.contains(colors) else {
                throw option.unsupported("a palette has 2, 4, 16 or 256 colors")
            }
            job.fields["quantize"] = try isOn(option, 1) ? colors.json : nil
        case "webp_options", "webpo":
            guard option.count <= 1, ["lossy", "near_lossless", "lossless", nil].contains(option[0]) else {
                throw option.unsupported("only lossy, near_lossless and lossless have a counterpart")
            }
            job.fields["lossless"] = option[0] == "lossless" ? true.json : nil
            job.fields["nearLossless"] = option[0] == "near_lossless" ? true.json : nil
        case "avif_options", "avifo":
            try option.allow(0...1)
            let ratios = ["auto": "auto", "on": "4:2:0", "off": "4:4:4"]
            guard let ratio = ratios[option[0] ?? "auto"] else { throw option.invalid("auto, on or off") }
            job.fields["chromaSubsampling"] = ratio == "auto" ? nil : ratio.json
        case "resizing_algorithm", "ra":
            try option.allow(1...1)
            let kernels = ["nearest": "none", "linear": "low", "cubic": "medium", "lanczos3": "default"]
            guard let kernel = kernels[option[0] ?? ""] else { throw option.unsupported() }
            job.fields.set("interpolationQuality", kernel)
        default: return false
        }
        return true
    }

    /// Applies `METHOD:TARGET`. DSSIM is (1 - SSIM) / 2.
    private mutating func searchQuality(_ option: URLOption) throws(Problem) {
        guard option.count <= 2 else { throw option.unsupported("the bounds of the quality have no counterpart") }
        switch option[0] {
        case "none", nil: break
        case "size":
            guard let bytes = try option.whole(1, in: 1...(1 << 30)) else { throw option.invalid("a number of bytes") }
            job.fields["maximumBytes"] = bytes.json
        case "dssim":
            var target = JobBuilder()
            target.set("target", 1 - 2 * (try option.number(1, in: 0.00005...0.25) ?? 0.02))
            job.fields["quality"] = target.json
        default: throw option.unsupported("the methods are none, size and dssim")
        }
    }

    /// Applies the extension at the end of the URL. An empty one means the format of the source.
    mutating func setExtension(_ text: Substring) throws(Problem) {
        guard !text.isEmpty else { return }
        job.fields.set("format", try format(String(text), ImgproxyURL.option("extension:\(text)")).rawValue)
    }

    private func format(_ text: String, _ option: URLOption) throws(Problem) -> ImageFormat {
        guard let format = ImageFormat(rawValue: text == "jpg" ? "jpeg" : text), ImageFormat.writable.contains(format)
        else {
            let names = ImageFormat.writable.map(\.rawValue).joined(separator: ", ")
            throw option.unsupported("the formats are \(names)")
        }
        return format
    }

    // MARK: Values

    /// Returns the only argument, a Boolean value.
    private func flag(_ option: URLOption) throws(Problem) -> Bool {
        try option.allow(1...1)
        return try flag(option, 0)
    }

    private func flag(_ option: URLOption, _ index: Int) throws(Problem) -> Bool {
        switch option[index] {
        case "1", "t", "true", "T", "TRUE", "True": return true
        case "0", "f", "false", "F", "FALSE", "False": return false
        default: throw option.invalid("1, t, true, 0, f or false")
        }
    }

    /// Returns a Boolean argument that is false if it is missing.
    private func isOn(_ option: URLOption, _ index: Int) throws(Problem) -> Bool {
        option[index] == nil ? false : try flag(option, index)
    }

    private func url(_ option: URLOption, _ options: ImgproxyURLOptions) throws(Problem) -> String {
        guard let bytes = Base64.decode(urlSafe: option[0] ?? ""), let text = String(validating: bytes, as: UTF8.self)
        else { throw option.invalid("a URL in base64url") }
        return try SourceURL.source(text, base: options.baseURL, scheme: nil, in: option.grammar)
    }

    private func name(_ option: URLOption) throws(Problem) -> String {
        let isEncoded = option[1] == nil ? false : try flag(option, 1)
        let text = option[0] ?? ""
        let bytes = isEncoded ? Base64.decode(urlSafe: text) : PercentEncoding.decode(text.utf8)
        guard let name = bytes.flatMap({ String(validating: $0, as: UTF8.self) }), ContentDisposition.isValid(name)
        else { throw option.invalid("a file name of up to 200 bytes without slashes and control characters") }
        return name
    }

    /// The disposition that the options ask for; nil for none.
    func disposition(of source: String) -> ContentDisposition? {
        guard isAttachment || fileName != nil else { return nil }
        return ContentDisposition(name: fileName ?? ContentDisposition.name(of: source), isAttachment: isAttachment)
    }

    // MARK: Job

    /// Returns the job.
    /// - Throws: ``Problem`` for a combination that Halcyon cannot express.
    func draft(of source: String, _ options: ImgproxyURLOptions) throws(Problem) -> JobBuilder {
        var job = job
        job.fields.set("source", source)
        if let preset { job.fields.set("preset", preset) }
        try setBox(&job)
        try setCrop(&job)
        if let trim {
            switch job.crop {
            case .fractions, .pixels: throw trim.option.unsupported("margins cannot be removed before a crop")
            case .anchored, nil: job.fields["trim"] = CompatibleJob.object(trim.parameters)
            }
        }
        addEffects(&job)
        if let watermark { try add(watermark, to: &job, source: watermarkURL ?? options.watermark) }
        do throws(Unmapped) {
            return try job.draft()
        } catch {
            throw Problem(.badRequest, "imgproxy: this combination of options is not supported: \(error.reason)")
        }
    }

    private func setBox(_ job: inout CompatibleJob) throws(Problem) {
        let hasBox = job.width > 0 && job.height > 0
        let scale = zoom * dpr
        if job.width == 0, job.height == 0 {
            // Without a size, the factors enlarge or shrink the source.
            guard scale == 1 || scale > 1 && !job.enlarges else {
                throw Problem(.badRequest, "imgproxy: zoom and dpr need a width or a height")
            }
            return
        }
        job.width *= scale
        job.height *= scale
        guard max(job.width, job.height) <= CompatibleJob.longestSide else {
            throw Problem(.badRequest, "imgproxy: the image would have a side of more than 65535 pixels")
        }
        guard hasBox else {
            guard type != "force", !extends, !extendsAspectRatio else {
                throw Problem(.badRequest, "imgproxy: force and extend need a width and a height")
            }
            return
        }
        switch type {
        case "fit" where extends: job.resizing = .pad
        case "fit" where extendsAspectRatio: job.resizing = .padDown
        case "fit": break
        case "force": job.resizing = .stretch
        // With extend, the size is that of the box.
        case _ where extends: (job.resizing, job.enlarges) = (.fill, true)
        case "fill": job.resizing = dpr == 1 ? .fill : .fillDown
        default: job.resizing = .fillDown
        }
        if extends { job.enlarges = true }
        guard type == "fit" || !gravity.isShifted else {
            throw Problem(.badRequest, "imgproxy: gravity is not supported with offsets")
        }
        job.gravity = gravity.gravity
    }

    private func setCrop(_ job: inout CompatibleJob) throws(Problem) {
        guard let crop else { return }
        let position = crop.gravity ?? gravity
        let (width, height) = (crop.width, crop.height)
        let unmapped = crop.option.unsupported("this size and gravity depend on the size of the source")
        if width < 1, height < 1 {
            let (across, down) = (width == 0 ? 1 : width, height == 0 ? 1 : height)
            guard abs(position.x) < 1, abs(position.y) < 1 else { throw unmapped }
            var (x, y): (Double, Double)
            switch position.gravity {
            case .attention, .detected: throw unmapped
            case .point(let left, let top): (x, y) = (left - across / 2, top - down / 2)
            case .edge(let left, let top):
                // Offsets lead away from the side.
                x = (1 - across) * left + (left == 1 ? -position.x : position.x)
                y = (1 - down) * top + (top == 1 ? -position.y : position.y)
            }
            (x, y) = (min(max(x, 0), 1 - across), min(max(y, 0), 1 - down))
            job.crop = .fractions(x: x, y: y, width: across, height: down)
            return
        }
        guard width == 0 || width >= 1, height == 0 || height >= 1,
            case .edge(let left, let top) = position.gravity
        else { throw unmapped }
        let across = width == 0 ? CompatibleJob.longestSide : width
        let down = height == 0 ? CompatibleJob.longestSide : height
        if (left, top) == (0, 0) {
            guard [position.x, position.y].allSatisfy({ $0 == 0 || $0 >= 1 }) else { throw unmapped }
            job.crop = .pixels(
                x: position.x.rounded(), y: position.y.rounded(), width: across, height: down)
        } else {
            guard !position.isShifted else { throw unmapped }
            job.crop = .anchored(width: across, height: down, x: left, y: top)
        }
    }

    private func addEffects(_ job: inout CompatibleJob) {
        if (brightness, contrast, saturation) != (0, 1, 1) {
            job.process(
                "colorControls", [("brightness", brightness), ("contrast", contrast), ("saturation", saturation)])
        }
        if blur > 0 { job.process("blur", [("radius", blur)]) }
        if sharpen > 0 { job.process("sharpen", [("radius", sharpen)]) }
        if pixelate > 1 { job.process("pixelate", [("size", pixelate)]) }
        if overlay.opacity > 0 {
            job.process("overlay", [("color", overlay.color.hexadecimal), ("fraction", 1 - overlay.opacity)])
        }
        if padding != [0, 0, 0, 0] {
            let lengths = padding.map { ($0 * dpr).rounded() }
            job.process(
                "pad", [("top", lengths[0]), ("right", lengths[1]), ("bottom", lengths[2]), ("left", lengths[3])])
        }
        if var background {
            background.alpha = UInt8((backgroundAlpha * 255).rounded())
            job.flatten(on: background)
        }
    }

    /// Adds the watermark `OPACITY:POSITION:X:Y:SCALE`.
    private func add(_ option: URLOption, to job: inout CompatibleJob, source: String) throws(Problem) {
        guard !source.isEmpty else {
            throw option.unsupported("no watermark is configured; set gateway.urls.imgproxy.watermark")
        }
        let range = -CompatibleJob.longestSide...CompatibleJob.longestSide
        let (x, y) = (try option.number(2, in: range) ?? 0, try option.number(3, in: range) ?? 0)
        let name = option[1] ?? "ce"
        let isTiled = name == "re"
        guard isTiled || Self.edges[name] != nil else {
            throw option.invalid("a position such as ce, no, soea or re")
        }
        let edge = isTiled ? (x: 0, y: 0) : Self.edges[name] ?? (x: 0.5, y: 0.5)
        // An offset counts only from a side that the watermark is next to.
        let offsets = [edge.x == 0.5 ? nil : x, edge.y == 0.5 ? nil : y].compactMap { $0 }
        let others = [edge.x == 0.5 ? x : 0, edge.y == 0.5 ? y : 0]
        guard others == [0, 0], Set(offsets).count <= 1, offsets.allSatisfy({ $0 == 0 || $0 >= 1 }) else {
            throw option.unsupported("the offsets must be equal, in pixels, and from the sides of the position")
        }
        var parameters: [(String, any CompatibleValue)] = [
            ("source", source), ("position", isTiled ? "topLeft" : Self.modes[name] ?? "center"),
            ("opacity", try option.number(0, in: 0...1) ?? 1),
        ]
        if let margin = offsets.first, margin > 0 { parameters.append(("margin", (margin * dpr).rounded())) }
        if let scale = try option.number(4, in: 0...1), scale > 0 { parameters.append(("widthFraction", scale)) }
        if isTiled { parameters.append(("tiled", true)) }
        job.process("watermark", parameters)
    }

    private static let modes = [
        "ce": "center", "no": "top", "so": "bottom", "ea": "right", "we": "left", "noea": "topRight",
        "nowe": "topLeft", "soea": "bottomRight", "sowe": "bottomLeft",
    ]
}
