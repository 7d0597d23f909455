/// A wait that doubles each time, from 20 ms to a second.
struct Pause {
    private var length = Duration.milliseconds(20)

    /// How long to wait this time.
    mutating func next() -> Duration {
        defer { length = min(length * 2, .seconds(1)) }
        return length
    }

    mutating func reset() { self = Pause() }
}
