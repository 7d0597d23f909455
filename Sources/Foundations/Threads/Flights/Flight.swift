/// A piece of shared work under way, as those see it who do it.
public final class Flight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// As urgent as the most urgent who waits for it.
    public let urgency: Urgency
    let number: UInt64
    private let flights: Flights<Key, Value>

    init(number: UInt64, level: Int, of flights: Flights<Key, Value>) {
        urgency = Urgency(level: level)
        self.number = number
        self.flights = flights
    }

    /// The point of no return: everybody who waits is told, and everybody who comes later. Only the first call counts.
    /// - Returns: whether anybody stays; if not, the work ends here.
    @discardableResult
    public func begin() -> Bool { flights.begin(number) }

    /// A key is made: who waits for it has it, and who asks from now on starts afresh.
    public func land(_ key: Key, _ value: Value) { flights.change { $0.land(key, value, number) } }

    /// While the answer is yes the work goes on even when nobody here waits for it: somebody elsewhere does. It is asked when the last
    /// one here leaves, and each second from then on. Nil, as at first: then the work ends at once.
    public func goesOn(while isWantedElsewhere: (@Sendable () async -> Bool)?) {
        flights.change { $0.setElsewhere(isWantedElsewhere, number) }
    }
}
