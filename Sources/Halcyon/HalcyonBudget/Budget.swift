/// What a number of things may take together; nil for as much as they like.
public struct Budget: Hashable, Sendable {
    /// Bytes of all of them.
    public var bytes: Int?
    /// Pixels, where they are images, all frames counted.
    public var pixels: Int?
    /// How many they may be.
    public var count: Int?

    /// No limits, or these.
    public init(bytes: Int? = nil, pixels: Int? = nil, count: Int? = nil) {
        self.bytes = bytes
        self.pixels = pixels
        self.count = count
    }

    /// Whether there is any limit.
    public var isLimited: Bool { bytes != nil || pixels != nil || count != nil }

    /// Whether one thing alone is within the limits.
    public func canHold(_ cost: Cost) -> Bool {
        cost.bytes <= bytes ?? .max && cost.pixels <= pixels ?? .max && 1 <= count ?? .max
    }
}

/// What one thing counts for.
public struct Cost: Hashable, Sendable {
    /// Bytes, as far as whoever keeps it counts them.
    public let bytes: Int
    /// Pixels of an image, all frames counted.
    public let pixels: Int

    /// So much.
    public init(bytes: Int, pixels: Int = 0) {
        self.bytes = bytes
        self.pixels = pixels
    }
}

/// How many things there are, or were removed, and what they count for together.
public struct BudgetSum: Hashable, Sendable {
    /// How many.
    public var count: Int
    /// Bytes of all of them.
    public var bytes: Int
    /// Pixels of those that are images, all frames counted.
    public var pixels: Int

    /// Nothing, or so much.
    public init(count: Int = 0, bytes: Int = 0, pixels: Int = 0) {
        self.count = count
        self.bytes = bytes
        self.pixels = pixels
    }

    mutating func add(_ cost: Cost) {
        count += 1
        bytes += cost.bytes
        pixels += cost.pixels
    }
}
