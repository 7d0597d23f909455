extension Job {
    /// A place that shows one image at a time, such as a cell of a table: of the jobs for it only the newest is wanted.
    public struct Slot: Hashable, Sendable {
        /// Bytes of the longest name.
        public static let longestName = 256
        /// The highest generation: what every JSON reader takes for a whole number.
        public static let highestGeneration: Int64 = 1 << 53

        /// Which place of the tenant's.
        public var name: String
        /// Which of the jobs for it is newer: the one of the higher number. nil for the time of submission.
        public var generation: Int64?

        /// Takes the values as they are.
        public init(name: String, generation: Int64? = nil) {
            self.name = name
            self.generation = generation
        }

        /// The generation of a job written at `submitted`, in seconds since 1970: unless given that time in milliseconds.
        public func generation(submitted: Double) -> Int64 {
            generation ?? Int64(max(0, min((submitted * 1000).rounded(), Double(Self.highestGeneration))))
        }
    }

    /// Tags of one job at most.
    public static let mostTags = 32
    /// Bytes of the longest tag.
    public static let longestTag = 128

    /// Whether a text can be a tag: 1 to 128 bytes of UTF-8, none of them a control character.
    public static func isTag(_ text: String) -> Bool {
        (1...longestTag).contains(text.utf8.count) && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
    }
}
