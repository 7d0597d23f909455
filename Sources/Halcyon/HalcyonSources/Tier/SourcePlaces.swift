import Threads

/// How many sources may be on their way or in memory: a number of places, each for so many bytes. A source that is larger takes several;
/// one on its way takes as many as sources have taken lately, until its size is known.
struct SourcePlaces: Sendable {
    private let slots: Slots
    private let bytesPerPlace: Int
    /// The mean of the sizes of late, in bytes; those of long ago count for less and less, and larger ones for more than smaller ones.
    private let typical: Lock<Double>

    /// - Parameter first: bytes that the first source is taken to have.
    init(_ slots: Slots, bytesPerPlace: Int, first: Int) {
        self.slots = slots
        self.bytesPerPlace = bytesPerPlace
        typical = Lock(Double(first))
    }

    /// Waits for a place.
    /// - Throws: `CancellationError`.
    func place(_ urgency: Urgency) async throws -> Place {
        let place = Place(of: slots)
        try await place.acquire(urgency)
        place.take(more: more(for: Int(typical.withLock { $0 })))
        return place
    }

    /// A source is there, of so many bytes, and has this place.
    func settle(_ place: Place, bytes: Int) {
        place.take(more: more(for: bytes))
        typical.withLock { typical in
            let change = Double(bytes) - typical
            typical += change / (change > 0 ? 2 : 8)
        }
    }

    private func more(for bytes: Int) -> Int { max(0, bytes - 1) / bytesPerPlace }
}
