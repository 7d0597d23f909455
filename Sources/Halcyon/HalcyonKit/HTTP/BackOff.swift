/// Pauses at random moments further and further apart, so that all who lost one gateway do not come to the next at once.
struct BackOff {
    /// The shortest pause.
    var base: Duration
    let longest: Duration
    private var failures = 0

    init(base: Duration, longest: Duration) { (self.base, self.longest) = (base, longest) }

    /// It went well: the next pause is a short one.
    mutating func reset() { failures = 0 }

    /// The next pause, and up to half as much again by chance.
    /// - Parameter least: what was asked for, which counts even where it is longer.
    mutating func next(atLeast least: Duration = .zero) -> Duration {
        let pause = min(base * (1 << min(failures, 16)), max(longest, base))
        failures += 1
        return max(least, pause * Double.random(in: 1...1.5))
    }
}
