extension String {
    /// 128 random bits in 32 lower-case digits: a name that nobody else draws or guesses.
    public static func randomHexadecimal() -> String {
        (0..<2).map { _ in
            let digits = String(UInt64.random(in: .min ... .max), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }
}
