import HalcyonModel

/// What all results of one tenant may take together; nil for as much as they like.
public struct ResultBudget: Hashable, Sendable {
    /// Bytes of their files.
    public var bytes: Int?
    /// Pixels of their images, all frames counted.
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

    /// Whether one result alone is within the limits.
    func canHold(_ cost: ResultCost) -> Bool {
        cost.bytes <= bytes ?? .max && cost.pixels <= pixels ?? .max && 1 <= count ?? .max
    }
}

/// What a result counts for.
public struct ResultCost: Hashable, Sendable {
    /// Bytes of the file; its facts and its name are not counted.
    public let bytes: Int
    /// Pixels of the image, all frames counted.
    public let pixels: Int

    init(_ facts: ResultFacts) {
        self.init(bytes: facts.bytes, pixels: facts.width * facts.height * (facts.frames ?? 1))
    }

    init(bytes: Int, pixels: Int) {
        self.bytes = bytes
        self.pixels = pixels
    }
}

/// How many results there are, or were removed, and what they count for together.
public struct ResultSum: Hashable, Sendable {
    /// How many.
    public var count: Int
    /// Bytes of their files.
    public var bytes: Int
    /// Pixels of their images, all frames counted.
    public var pixels: Int

    /// Nothing, or so much.
    public init(count: Int = 0, bytes: Int = 0, pixels: Int = 0) {
        self.count = count
        self.bytes = bytes
        self.pixels = pixels
    }

    mutating func add(_ cost: ResultCost) {
        count += 1
        bytes += cost.bytes
        pixels += cost.pixels
    }
}
