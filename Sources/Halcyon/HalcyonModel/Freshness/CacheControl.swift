/// The directives of a response's Cache-Control (RFC 9111, section 5.2.2; RFC 5861).
struct CacheControl: Equatable {
    /// What `max-age` said.
    enum MaxAge: Equatable {
        case absent
        case seconds(Int)
        /// Not a whole number: by RFC 9111, section 4.2.1, such a response counts as stale.
        case invalid

        /// The seconds, where there are any.
        var number: Int? { if case .seconds(let seconds) = self { seconds } else { nil } }
    }

    var maxAge = MaxAge.absent
    /// What `s-maxage` said: for caches that serve many, in place of `max-age`.
    var sharedMaxAge = MaxAge.absent
    /// `no-store`.
    var noStore = false
    /// `no-cache`, with or without field names.
    var noCache = false
    /// `private`, with or without field names: not for caches that serve many.
    var isPrivate = false
    /// `public`.
    var isPublic = false
    /// `must-revalidate` or `proxy-revalidate`: never to be used when stale.
    var mustRevalidate = false
    /// Seconds after freshness in which it may be used while it is revalidated (RFC 5861, section 3).
    var staleWhileRevalidate: Int?
    /// Seconds after freshness in which it may be used when the origin fails (RFC 5861, section 4).
    var staleIfError: Int?

    /// `no-store`, or `no-cache` with or without field names: results made of it are not stored.
    var forbidsStoring: Bool { noStore || noCache }

    /// `must-revalidate`, `proxy-revalidate`, `no-cache` or `s-maxage`: not to be used when stale (RFC 9111, section 4.2.4).
    var forbidsStaleUse: Bool { mustRevalidate || noCache || sharedMaxAge != .absent }

    /// Numbers from here on count as "for ever" (RFC 9111, section 1.2.2).
    static let greatestSeconds = 1 << 31

    /// Reads a field's value, several fields joined by commas.
    init(_ field: String) {
        for directive in Self.directives(of: field.utf8) {
            switch directive.name {
            case "no-store": noStore = true
            case "no-cache": noCache = true
            case "private": isPrivate = true
            case "public": isPublic = true
            case "must-revalidate", "proxy-revalidate": mustRevalidate = true
            case "max-age" where maxAge == .absent: maxAge = Self.seconds(directive.value)
            case "s-maxage" where sharedMaxAge == .absent: sharedMaxAge = Self.seconds(directive.value)
            case "stale-while-revalidate": staleWhileRevalidate = Self.seconds(directive.value).number
            case "stale-if-error": staleIfError = Self.seconds(directive.value).number
            default: break
            }
        }
    }

    private static func seconds(_ value: [UInt8]?) -> MaxAge {
        guard let value, !value.isEmpty else { return .invalid }
        var seconds = 0
        for byte in value {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return .invalid }
            seconds = min(seconds * 10 + Int(byte - UInt8(ascii: "0")), greatestSeconds)
        }
        return .seconds(seconds)
    }

    /// Splits at commas outside quotes; names in lower case, values without their quotes.
    private static func directives(of field: String.UTF8View) -> [(name: String, value: [UInt8]?)] {
        var directives: [(String, [UInt8]?)] = []
        var name: [UInt8] = []
        var value: [UInt8]?
        var quoted = false
        var escaped = false
        func end() {
            let trimmed = String(decoding: trim(name), as: UTF8.self).lowercased()
            if !trimmed.isEmpty { directives.append((trimmed, value.map(trim))) }
            (name, value) = ([], nil)
        }
        for byte in field {
            if escaped {
                value?.append(byte)
                escaped = false
            } else if quoted, byte == UInt8(ascii: "\\") {
                escaped = true
            } else if byte == UInt8(ascii: "\"") {
                quoted.toggle()
            } else if !quoted, byte == UInt8(ascii: ",") {
                end()
            } else if !quoted, value == nil, byte == UInt8(ascii: "=") {
                value = []
            } else if value == nil {
                name.append(byte)
            } else {
                value?.append(byte)
            }
        }
        end()
        return directives
    }

    private static func trim(_ bytes: [UInt8]) -> [UInt8] {
        func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let tail = bytes.drop(while: isSpace)
        return Array(tail.prefix((tail.lastIndex { !isSpace($0) } ?? tail.startIndex - 1) - tail.startIndex + 1))
    }
}
