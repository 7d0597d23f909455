import Threads

/// The memory of results that are being stored or delivered. It counts as sources do: while Redis or a target is slow,
/// fewer sources are loaded.
final class ResultMemory: Sendable {
    /// Bytes of one result, held until nobody has it any more.
    final class Share: Sendable {
        private let memory: ResultMemory
        private let bytes: Int

        fileprivate init(_ memory: ResultMemory, _ bytes: Int) {
            self.memory = memory
            self.bytes = bytes
        }

        deinit { memory.add(-bytes) }
    }

    private let places: Slots
    private let bytesPerPlace: Int
    private let bytes = Lock(0)

    /// - Parameters:
    ///   - places: those of sources.
    ///   - bytesPerPlace: bytes that one place stands for.
    init(_ places: Slots, bytesPerPlace: Int) {
        self.places = places
        self.bytesPerPlace = bytesPerPlace
    }

    /// Counts the bytes of a result from now on, whether or not there is room for them: they are there.
    func hold(_ bytes: Int) -> Share {
        add(bytes)
        return Share(self, bytes)
    }

    private func add(_ change: Int) {
        let places = bytes.withLock { bytes in
            let before = bytes / bytesPerPlace
            bytes += change
            return bytes / bytesPerPlace - before
        }
        if places > 0 { self.places.take(places) }
        if places < 0 { self.places.release(-places) }
    }
}
