import Telemetry
import Threads

/// Uses of things on their way into the books: collected for about a second, so that a hit costs no command.
public final class Uses: Sendable {
    private struct State {
        /// By book, of each thing the number of its last use.
        var last: [String: [String: Int]] = [:]
        var count = 0
        /// Tells the books when it is time; nil while there is nothing to tell.
        var telling: Task<Void, Never>?
        var isClosed = false
    }

    private let state = Lock(State())
    private let books: Books
    private let errors: ToleratedErrors
    private let delay: Duration
    /// Things in one command at most: Redis does nothing else meanwhile.
    private static let step = 1000

    /// - Parameter delay: for how long uses are collected.
    init(_ books: Books, _ errors: ToleratedErrors, delay: Duration = .seconds(1)) {
        self.books = books
        self.errors = errors
        self.delay = delay
    }

    /// Notes uses, in their order.
    public func note(_ keys: some Sequence<String>, in book: String) {
        state.withLock { state in
            guard !state.isClosed else { return }
            for key in keys {
                state.count += 1
                state.last[book, default: [:]][key] = state.count
            }
            if state.telling == nil { state.telling = Task { await self.tellLater() } }
        }
    }

    private func tellLater() async {
        do { try await Task.sleep(for: delay) } catch { return }
        await tell()
    }

    /// What is not taken is forgotten: the next use is told again.
    private func tell() async {
        let last = state.withLock { state in
            let last = state.last
            (state.last, state.telling) = ([:], nil)
            return last
        }
        for (book, uses) in last {
            let keys = uses.sorted { $0.value < $1.value }.map(\.key)
            for start in stride(from: 0, to: keys.count, by: Self.step) {
                let some = Array(keys[start..<min(start + Self.step, keys.count)])
                await errors.tolerating { try await books.use(some, in: book) }
            }
        }
    }

    /// Tells what is known, and takes no more.
    public func close() async {
        let telling = state.withLock { state in
            state.isClosed = true
            return state.telling
        }
        telling?.cancel()
        await tell()
    }
}
