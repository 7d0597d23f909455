import Threads

/// A number that is looked up whenever it is wanted.
final class Reading: Sendable {
    private let read: Lock<@Sendable () -> Double>

    init(_ read: @escaping @Sendable () -> Double) { self.read = Lock(read) }

    /// Has it read in another way from now on.
    func replace(_ read: @escaping @Sendable () -> Double) { self.read.withLock { $0 = read } }

    /// The number now.
    var value: Double { read.withLock { $0 }() }
}
