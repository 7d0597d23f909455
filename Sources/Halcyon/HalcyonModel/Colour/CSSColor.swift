/// A colour of sRGB as CSS writes them (CSS Color 4, sections 4 to 6.1 and 7), with 8 bits a channel.
public struct CSSColor: Hashable, Codable, Sendable {
    /// 0 to 255.
    public var red: UInt8
    /// 0 to 255.
    public var green: UInt8
    /// 0 to 255.
    public var blue: UInt8
    /// 0, transparent, to 255, opaque.
    public var alpha: UInt8

    /// Takes the values as they are.
    public init(red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8 = 255) {
        self.red = red
        self.green = green
        self.blue = blue
        self.alpha = alpha
    }

    /// Nothing at all: black without opacity, as CSS has it.
    public static let transparent = CSSColor(red: 0, green: 0, blue: 0, alpha: 0)
    /// Opaque white.
    public static let white = CSSColor(red: 255, green: 255, blue: 255)
    /// Opaque black.
    public static let black = CSSColor(red: 0, green: 0, blue: 0)

    /// Whether nothing shines through.
    public var isOpaque: Bool { alpha == 255 }

    /// As keys and `--help` write it: `#rrggbbaa`.
    public var hexadecimal: String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = [UInt8(ascii: "#")]
        for channel in [red, green, blue, alpha] { text += [digits[Int(channel >> 4)], digits[Int(channel & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }
}

extension CSSColor {
    /// Reads a name (`rebeccapurple`), `transparent`, `#rgb`, `#rgba`, `#rrggbb`, `#rrggbbaa`, `rgb()`, `rgba()`, `hsl()` or
    /// `hsla()`, with commas or with spaces and a slash; upper and lower case are the same. Numbers are below a million. nil for
    /// anything else.
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

    /// Three channels, and perhaps an opacity: all behind commas, or the channels behind spaces and the opacity behind a slash.
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

    /// CSS Color 4, section 7.1.
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
        // No more than CSS has: `Double` also takes infinities and hexadecimal numbers.
        guard whole != nil || !isPercentage, digits.allSatisfy({ "0123456789+-.e".contains($0) }),
            let number = Double(digits), abs(number) < 1e6
        else { return nil }
        return isPercentage ? number / 100 * (whole ?? 1) : number
    }

    private static func channel(_ value: Double) -> UInt8 { UInt8(min(max(rounded(value), 0), 255)) }
}
