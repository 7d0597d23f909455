import Curl
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

    /// Waits for a place, and for those beside it that sources of late have taken.
    /// - Throws: `CancellationError`.
    func place(_ urgency: Urgency) async throws -> Place {
        let place = Place(of: slots)
        try await place.acquire(urgency)
        try await place.grow(more: more(for: Int(typical.withLock { $0 })))
        return place
    }

    /// The memory of what is loaded into a place.
    func memory(of place: Place) -> SourceMemory { SourceMemory(place: place, bytesPerPlace: bytesPerPlace) }

    /// A source is there, of so many bytes, and has this place.
    func settle(_ place: Place, bytes: Int) {
        place.take(more: more(for: bytes))
        typical.withLock { typical in
            let change = Double(bytes) - typical
            typical += change / (change > 0 ? 2 : 8)
        }
    }

    private func more(for bytes: Int) -> Int { SourceMemory.more(for: bytes, bytesPerPlace) }
}

/// The memory that a source being loaded may take: what its place stands for, and more where that is to be had.
///
/// It is a task-local value, as ``LoadMeter`` is.
struct SourceMemory: Sendable {
    /// The memory of the load that the current task performs.
    @TaskLocal static var current: SourceMemory?

    fileprivate let place: Place
    fileprivate let bytesPerPlace: Int

    /// For one request of the load.
    /// - Parameter begun: bytes received earlier, if the request is for the rest.
    func admission(after begun: Int) -> HTTPAdmission {
        HTTPAdmission(bytes: max(0, place.places.multipliedOrMaximum(by: bytesPerPlace) - begun)) { bytes in
            try await grow(to: begun + bytes)
            return place.places.multipliedOrMaximum(by: bytesPerPlace) - begun
        }
    }

    /// Waits until so many bytes may be held.
    /// - Throws: `CancellationError`.
    func grow(to bytes: Int) async throws { try await place.grow(more: Self.more(for: bytes, bytesPerPlace)) }

    /// How many places beside its own a source of so many bytes takes.
    fileprivate static func more(for bytes: Int, _ bytesPerPlace: Int) -> Int { max(0, bytes - 1) / bytesPerPlace }
}

extension Int {
    fileprivate func multipliedOrMaximum(by other: Int) -> Int {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? .max : product
    }
}
