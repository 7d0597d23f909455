/// Tells a lost cluster from a connection that was merely closed for being idle.
///
/// librdkafka says when all brokers are down, also when the only open connection had been idle too long; it never says
/// when one is back. So its word is a suspicion, which one probe confirms or clears, and after a loss probes go on
/// until one succeeds.
struct ConnectionWatch {
    private enum State { case up, suspected, lost }
    private var state = State.up

    /// How long a probe may take, in milliseconds; nil when none is needed now.
    var probe: Int32? {
        switch state {
        case .up: nil
        case .suspected: 500
        case .lost: 100
        }
    }

    /// librdkafka says that all brokers are down.
    mutating func allBrokersDown() {
        if state == .up { state = .suspected }
    }

    /// A probe got an answer, or did not. Gives what is to be told, if anything.
    mutating func probed(answered: Bool) -> Connection? {
        defer { state = answered ? .up : .lost }
        switch (state, answered) {
        case (.lost, true): return .restored
        case (.suspected, false): return .lost
        default: return nil
        }
    }
}
