/// The Cache-Control directives of a response (RFC 9111, section 5.2.2; RFC 5861).
struct CacheControl: Equatable {
    /// The value of a `max-age` or `s-maxage` directive.
    enum MaxAge: Equatable {
        case absent
        case seconds(Int)
        /// The value is not a whole number. Such a response is stale (RFC 9111, section 4.2.1).
        case invalid

        /// The seconds, if the directive has a valid value.
        var number: Int? { if case .seconds(let seconds) = self { seconds } else { nil } }
    }

    var maxAge = MaxAge.absent
    /// The `s-maxage` directive, which replaces `max-age` for shared caches.
    var sharedMaxAge = MaxAge.absent
    /// `no-store`.
    var noStore = false
    /// `no-cache`, with or without field names.
    var noCache = false
    /// `private`, with or without field names: not to be stored by shared caches.
    var isPrivate = false
    /// `public`.
    var isPublic = false
    /// `must-revalidate` or `proxy-revalidate`: must not be used when stale.
    var mustRevalidate = false
    /// The seconds after expiration during which the response may be used while it is revalidated (RFC 5861, section
    /// 3).
    var staleWhileRevalidate: Int?
    /// The seconds after expiration during which the response may be used if the origin fails (RFC 5861, section 4).
    var staleIfError: Int?

    /// True for `no-store` or `no-cache`, with or without field names. Results rendered from the response are not
    /// stored.
    var forbidsStoring: Bool { noStore || noCache }

    /// True for `must-revalidate`, `proxy-revalidate`, `no-cache` or `s-maxage`, which forbid stale use (RFC 9111,
    /// section 4.2.4).
    var forbidsStaleUse: Bool { mustRevalidate || noCache || sharedMaxAge != .absent }

    /// Parses the value of the field. Several fields are joined by commas.
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
        guard let value, let seconds = DeltaSeconds.parse(value) else { return .invalid }
        return .seconds(seconds)
    }

    /// Splits the field at commas outside quotes. Names are returned in lower case, and values without quotes.
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

/// A whole number of seconds in a header field (`delta-seconds`; RFC 9111, section 1.2.2).
enum DeltaSeconds {
    /// The largest number of seconds. Larger values count as this one.
    static let greatest = 1 << 31

    /// Parses decimal digits.
    /// - Parameter text: The value without white space.
    /// - Returns: The seconds, at most ``greatest``; nil if the text is empty or contains anything but digits.
    static func parse(_ text: some Sequence<UInt8>) -> Int? {
        var seconds: Int?
        for byte in text {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            seconds = min((seconds ?? 0) * 10 + Int(byte - UInt8(ascii: "0")), greatest)
        }
        return seconds
    }
}
