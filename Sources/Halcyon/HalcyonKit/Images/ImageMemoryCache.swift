import Foundation

/// A dictionary of limited cost and count. When a limit is exceeded, the values that were not used for the longest time
/// are removed. All operations take constant time, apart from what they remove. A pure value.
struct LRUCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Node {
        let key: Key
        var value: Value
        var cost: Int
        var newer, older: Int?
    }

    /// The maximum sum of all costs, and the maximum number of values.
    let costLimit, countLimit: Int
    /// The sum of all costs.
    private(set) var cost = 0
    /// The number of values.
    var count: Int { places.count }

    private var nodes: [Node?] = []
    private var unused: [Int] = []
    private var places: [Key: Int] = [:]
    private var newest, oldest: Int?

    /// Creates an empty cache.
    init(costLimit: Int, countLimit: Int) { (self.costLimit, self.countLimit) = (costLimit, countLimit) }

    /// Returns a value, which becomes the last one used.
    mutating func value(for key: Key) -> Value? {
        guard let place = places[key], let value = nodes[place]?.value else { return nil }
        if place != newest {
            unlink(place)
            link(place)
        }
        return value
    }

    /// Adds or replaces a value, which becomes the last one used. A value that exceeds the limits by itself is not
    /// stored.
    mutating func insert(_ value: Value, for key: Key, cost: Int) {
        remove(key)
        guard cost <= costLimit, countLimit > 0 else { return }
        trim(toCost: costLimit - cost, count: countLimit - 1)
        let node = Node(key: key, value: value, cost: cost)
        let place: Int
        if let free = unused.popLast() {
            place = free
            nodes[free] = node
        } else {
            place = nodes.count
            nodes.append(node)
        }
        places[key] = place
        self.cost += cost
        link(place)
    }

    /// Removes a value, if it exists.
    mutating func remove(_ key: Key) {
        guard let place = places.removeValue(forKey: key) else { return }
        unlink(place)
        cost -= nodes[place]?.cost ?? 0
        nodes[place] = nil
        unused.append(place)
    }

    /// Removes the values that were not used for the longest time, until the rest is within these limits.
    mutating func trim(toCost costLimit: Int, count countLimit: Int = .max) {
        while cost > max(0, costLimit) || count > max(0, countLimit), let oldest, let node = nodes[oldest] {
            remove(node.key)
        }
    }

    private mutating func link(_ place: Int) {
        nodes[place]?.older = newest
        nodes[place]?.newer = nil
        if let newest { nodes[newest]?.newer = place } else { oldest = place }
        newest = place
    }

    private mutating func unlink(_ place: Int) {
        guard let node = nodes[place] else { return }
        if let newer = node.newer { nodes[newer]?.older = node.older } else { newest = node.older }
        if let older = node.older { nodes[older]?.newer = node.newer } else { oldest = node.newer }
    }
}

/// An image in memory, and the rules for its reuse.
struct CachedImage: Sendable, Equatable {
    var image: LoadedImage
    /// The entity tag by which the image can be revalidated.
    var entityTag: String?
    /// The time from which the image must be revalidated.
    var staleAt: ContinuousClock.Instant

    /// The image as it is delivered without a request; nil if it must be revalidated.
    func fresh(at now: ContinuousClock.Instant) -> LoadedImage? {
        guard now < staleAt else { return nil }
        var image = image
        image.cacheStatus = .memory
        return image
    }
}

/// The rules for the reuse of a response, as a private cache reads them (RFC 9111, 4.2 and 5.2.2). A pure value.
struct ResponseReuse: Sendable, Equatable {
    /// False if the response must not be stored.
    let mayStore: Bool
    /// The time after the request for which the response may be used without a new request; nil if the response says
    /// nothing about it, and 0 if it must be revalidated or its header fields are invalid.
    let lifetime: Duration?

    /// Reads the header fields of a response.
    /// - Parameters:
    ///   - now: The time of the response, for one without `Date`.
    ///   - header: Returns the value of a field.
    init(now: Date = Date(), _ header: (String) -> String?) {
        var (directives, isAmbiguous) = ([String: String](), false)
        for part in Self.parts(header("Cache-Control") ?? "") {
            let sides = part.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            guard let name = sides.first?.lowercased() else { continue }
            let value = sides.count > 1 ? sides[1].trimmingCharacters(in: ["\""]) : ""
            // Of two lifetimes neither can be trusted.
            if let former = directives.updateValue(value, forKey: name), former != value { isAmbiguous = true }
        }
        mayStore = directives["no-store"] == nil
        guard mayStore, directives["no-cache"] == nil, !isAmbiguous else {
            lifetime = .zero
            return
        }
        var seconds: Double?
        if let maxAge = directives["max-age"] {
            seconds = Self.seconds(maxAge) ?? 0
        } else if let expires = header("Expires") {
            // An invalid date, such as 0, has passed already.
            let date = header("Date").flatMap(Self.date) ?? now
            seconds = Self.date(expires).map { $0.timeIntervalSince(date) } ?? 0
        }
        let age = header("Age").flatMap(Self.seconds) ?? 0
        lifetime = seconds.map { .seconds(min(max(0, $0 - age), 365 * 86_400)) }
    }

    /// The parts of a list with commas between them. Quoted strings may contain commas.
    private static func parts(_ list: String) -> [String] {
        var (parts, isQuoted) = ([""], false)
        for character in list {
            if character == "\"" { isQuoted.toggle() }
            if character == ",", !isQuoted { parts.append("") } else { parts[parts.count - 1].append(character) }
        }
        return parts
    }

    /// A number of seconds (RFC 9111, 1.2.2).
    private static func seconds(_ text: String) -> Double? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Double(text)
    }

    /// A date, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
    private static func date(_ text: String) -> Date? {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.date(from: text)
    }
}
