/// An sRGB color in CSS notation (CSS Color 4, sections 4 to 6.1 and 7), with 8 bits per channel.
public struct CSSColor: Hashable, Codable, Sendable {
    /// The red channel, 0 to 255.
    public var red: UInt8
    /// The green channel, 0 to 255.
    public var green: UInt8
    /// The blue channel, 0 to 255.
    public var blue: UInt8
    /// The opacity, 0 (transparent) to 255 (opaque).
    public var alpha: UInt8

    /// Creates a color from its channels.
    public init(red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8 = 255) {
        self.red = red
        self.green = green
        self.blue = blue
        self.alpha = alpha
    }

    /// Transparent black, as `transparent` in CSS.
    public static let transparent = CSSColor(red: 0, green: 0, blue: 0, alpha: 0)
    /// Opaque white.
    public static let white = CSSColor(red: 255, green: 255, blue: 255)
    /// Opaque black.
    public static let black = CSSColor(red: 0, green: 0, blue: 0)

    /// True if the color is fully opaque.
    public var isOpaque: Bool { alpha == 255 }

    /// The color as `#rrggbbaa`, used in cache keys and `--help`.
    public var hexadecimal: String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = [UInt8(ascii: "#")]
        for channel in [red, green, blue, alpha] { text += [digits[Int(channel >> 4)], digits[Int(channel & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }
}

extension CSSColor {
    /// Parses a color: a name (`rebeccapurple`), `transparent`, `#rgb`, `#rgba`, `#rrggbb`, `#rrggbbaa`, `rgb()`,
    /// `rgba()`, `hsl()` or `hsla()`, with commas or with spaces and a slash. Case is ignored, and numbers must be
    /// below a million. Returns nil for other texts.
    public init?(_ text: String) {
        guard text.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        let text = text.lowercased()
        if text.hasPrefix("#") {
            self.init(hexadecimal: text.utf8.dropFirst())
        } else if text.hasSuffix(")") {
            self.init(function: text)
        } else if text == "transparent" {
            self = .transparent
        } else if let rgb = Self.named[text] {
            self.init(red: UInt8(rgb >> 16 & 255), green: UInt8(rgb >> 8 & 255), blue: UInt8(rgb & 255))
        } else {
            return nil
        }
    }

    private init?(hexadecimal digits: Substring.UTF8View) {
        let values = digits.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        guard values.count == digits.count else { return nil }
        let channels: [Int]
        switch values.count {
        case 3, 4: channels = values.map { $0 * 17 }
        case 6, 8: channels = stride(from: 0, to: values.count, by: 2).map { values[$0] * 16 + values[$0 + 1] }
        default: return nil
        }
        self.init(
            red: UInt8(channels[0]), green: UInt8(channels[1]), blue: UInt8(channels[2]),
            alpha: channels.count == 4 ? UInt8(channels[3]) : 255)
    }

    private init?(function text: String) {
        guard let open = text.firstIndex(of: "("),
            let parts = Self.parts(of: text[text.index(after: open)...].dropLast())
        else { return nil }
        let name = text[..<open]
        let opacity = parts.count == 4 ? Self.number(parts[3], percentOf: 1) : 1
        guard let alpha = opacity.map({ Self.channel($0 * 255) }) else { return nil }
        switch name {
        case "rgb", "rgba":
            let channels = parts.prefix(3).compactMap { Self.number($0, percentOf: 255) }.map(Self.channel)
            guard channels.count == 3 else { return nil }
            self.init(red: channels[0], green: channels[1], blue: channels[2], alpha: alpha)
        case "hsl", "hsla":
            guard let hue = Self.number(parts[0].hasSuffix("deg") ? parts[0].dropLast(3) : parts[0], percentOf: nil),
                parts[1].hasSuffix("%"), parts[2].hasSuffix("%"), let saturation = Self.number(parts[1], percentOf: 1),
                let lightness = Self.number(parts[2], percentOf: 1)
            else { return nil }
            self.init(
                hue: hue, saturation: min(max(saturation, 0), 1), lightness: min(max(lightness, 0), 1), alpha: alpha)
        default: return nil
        }
    }

    /// Splits arguments into three channels and an optional opacity: separated by commas, or channels by spaces and the
    /// opacity by a slash.
    private static func parts(of arguments: Substring) -> [Substring]? {
        var parts: [Substring]
        if arguments.contains(",") {
            parts = arguments.split(separator: ",", omittingEmptySubsequences: false)
        } else {
            let halves = arguments.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            parts = halves[0].split(separator: " ")
            guard parts.count == 3 else { return nil }
            parts += halves.dropFirst()
        }
        guard parts.count == 3 || parts.count == 4 else { return nil }
        for place in parts.indices {
            parts[place] = parts[place].drop { $0 == " " }
            while parts[place].last == " " { parts[place].removeLast() }
        }
        return parts
    }

    /// Converts HSL to sRGB (CSS Color 4, section 7.1).
    private init(hue: Double, saturation: Double, lightness: Double, alpha: UInt8) {
        func channel(_ offset: Double) -> UInt8 {
            var k = (offset + hue / 30).truncatingRemainder(dividingBy: 12)
            if k < 0 { k += 12 }
            let amount = saturation * min(lightness, 1 - lightness)
            return Self.channel((lightness - amount * max(-1, min(k - 3, 9 - k, 1))) * 255)
        }
        self.init(red: channel(0), green: channel(8), blue: channel(4), alpha: alpha)
    }

    private static func number(_ text: Substring, percentOf whole: Double?) -> Double? {
        let isPercentage = text.hasSuffix("%")
        let digits = isPercentage ? text.dropLast() : text
        // `Double` would also accept infinities and hexadecimal numbers, which CSS does not have.
        guard whole != nil || !isPercentage, digits.allSatisfy({ "0123456789+-.e".contains($0) }),
            let number = Double(digits), abs(number) < 1e6
        else { return nil }
        return isPercentage ? number / 100 * (whole ?? 1) : number
    }

    private static func channel(_ value: Double) -> UInt8 { UInt8(min(max(rounded(value), 0), 255)) }
}

extension CSSColor {
    /// The 148 named colors (CSS Color 4, section 6.1), as 0xRRGGBB.
    static let named: [String: UInt32] = [
        "aliceblue": 0xf0f8ff, "antiquewhite": 0xfaebd7, "aqua": 0x00ffff, "aquamarine": 0x7fffd4, "azure": 0xf0ffff,
        "beige": 0xf5f5dc, "bisque": 0xffe4c4, "black": 0x000000, "blanchedalmond": 0xffebcd, "blue": 0x0000ff,
        "blueviolet": 0x8a2be2, "brown": 0xa52a2a, "burlywood": 0xdeb887, "cadetblue": 0x5f9ea0,
        "chartreuse": 0x7fff00, "chocolate": 0xd2691e, "coral": 0xff7f50, "cornflowerblue": 0x6495ed,
        "cornsilk": 0xfff8dc, "crimson": 0xdc143c, "cyan": 0x00ffff, "darkblue": 0x00008b, "darkcyan": 0x008b8b,
        "darkgoldenrod": 0xb8860b, "darkgray": 0xa9a9a9, "darkgreen": 0x006400, "darkgrey": 0xa9a9a9,
        "darkkhaki": 0xbdb76b, "darkmagenta": 0x8b008b, "darkolivegreen": 0x556b2f, "darkorange": 0xff8c00,
        "darkorchid": 0x9932cc, "darkred": 0x8b0000, "darksalmon": 0xe9967a, "darkseagreen": 0x8fbc8f,
        "darkslateblue": 0x483d8b, "darkslategray": 0x2f4f4f, "darkslategrey": 0x2f4f4f, "darkturquoise": 0x00ced1,
        "darkviolet": 0x9400d3, "deeppink": 0xff1493, "deepskyblue": 0x00bfff, "dimgray": 0x696969,
        "dimgrey": 0x696969, "dodgerblue": 0x1e90ff, "firebrick": 0xb22222, "floralwhite": 0xfffaf0,
        "forestgreen": 0x228b22, "fuchsia": 0xff00ff, "gainsboro": 0xdcdcdc, "ghostwhite": 0xf8f8ff, "gold": 0xffd700,
        "goldenrod": 0xdaa520, "gray": 0x808080, "green": 0x008000, "greenyellow": 0xadff2f, "grey": 0x808080,
        "honeydew": 0xf0fff0, "hotpink": 0xff69b4, "indianred": 0xcd5c5c, "indigo": 0x4b0082, "ivory": 0xfffff0,
        "khaki": 0xf0e68c, "lavender": 0xe6e6fa, "lavenderblush": 0xfff0f5, "lawngreen": 0x7cfc00,
        "lemonchiffon": 0xfffacd, "lightblue": 0xadd8e6, "lightcoral": 0xf08080, "lightcyan": 0xe0ffff,
        "lightgoldenrodyellow": 0xfafad2, "lightgray": 0xd3d3d3, "lightgreen": 0x90ee90, "lightgrey": 0xd3d3d3,
        "lightpink": 0xffb6c1, "lightsalmon": 0xffa07a, "lightseagreen": 0x20b2aa, "lightskyblue": 0x87cefa,
        "lightslategray": 0x778899, "lightslategrey": 0x778899, "lightsteelblue": 0xb0c4de, "lightyellow": 0xffffe0,
        "lime": 0x00ff00, "limegreen": 0x32cd32, "linen": 0xfaf0e6, "magenta": 0xff00ff, "maroon": 0x800000,
        "mediumaquamarine": 0x66cdaa, "mediumblue": 0x0000cd, "mediumorchid": 0xba55d3, "mediumpurple": 0x9370db,
        "mediumseagreen": 0x3cb371, "mediumslateblue": 0x7b68ee, "mediumspringgreen": 0x00fa9a,
        "mediumturquoise": 0x48d1cc, "mediumvioletred": 0xc71585, "midnightblue": 0x191970, "mintcream": 0xf5fffa,
        "mistyrose": 0xffe4e1, "moccasin": 0xffe4b5, "navajowhite": 0xffdead, "navy": 0x000080, "oldlace": 0xfdf5e6,
        "olive": 0x808000, "olivedrab": 0x6b8e23, "orange": 0xffa500, "orangered": 0xff4500, "orchid": 0xda70d6,
        "palegoldenrod": 0xeee8aa, "palegreen": 0x98fb98, "paleturquoise": 0xafeeee, "palevioletred": 0xdb7093,
        "papayawhip": 0xffefd5, "peachpuff": 0xffdab9, "peru": 0xcd853f, "pink": 0xffc0cb, "plum": 0xdda0dd,
        "powderblue": 0xb0e0e6, "purple": 0x800080, "rebeccapurple": 0x663399, "red": 0xff0000, "rosybrown": 0xbc8f8f,
        "royalblue": 0x4169e1, "saddlebrown": 0x8b4513, "salmon": 0xfa8072, "sandybrown": 0xf4a460,
        "seagreen": 0x2e8b57, "seashell": 0xfff5ee, "sienna": 0xa0522d, "silver": 0xc0c0c0, "skyblue": 0x87ceeb,
        "slateblue": 0x6a5acd, "slategray": 0x708090, "slategrey": 0x708090, "snow": 0xfffafa, "springgreen": 0x00ff7f,
        "steelblue": 0x4682b4, "tan": 0xd2b48c, "teal": 0x008080, "thistle": 0xd8bfd8, "tomato": 0xff6347,
        "turquoise": 0x40e0d0, "violet": 0xee82ee, "wheat": 0xf5deb3, "white": 0xffffff, "whitesmoke": 0xf5f5f5,
        "yellow": 0xffff00, "yellowgreen": 0x9acd32,
    ]
}
