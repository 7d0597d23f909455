extension [UInt8] {
    /// JSON without line breaks, which may only stand between its parts.
    public var onOneLine: [UInt8] {
        contains { $0 == 10 || $0 == 13 } ? map { $0 == 10 || $0 == 13 ? 32 : $0 } : self
    }
}
