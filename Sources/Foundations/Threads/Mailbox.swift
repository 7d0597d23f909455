/// Letters from many threads to one that reads them in batches, in the order of posting.
///
/// The reader is woken once per batch: by whoever posts to an empty box.
public final class Mailbox<Letter: Sendable>: Sendable {
    /// What became of a posted letter.
    public enum Receipt: Sendable {
        /// It is the first of a batch: the poster wakes the reader.
        case first
        /// It goes with the batch whose reader has been woken.
        case queued
        /// The box is closed and the letter was not taken.
        case closed
    }

    private struct Content {
        var letters: [Letter] = []
        var isClosed = false
    }

    private let content = Lock(Content())

    /// An empty, open box.
    public init() {}

    /// Posts a letter, from any thread.
    public func post(_ letter: Letter) -> Receipt {
        content.withLock { content in
            if content.isClosed { return .closed }
            content.letters.append(letter)
            return content.letters.count == 1 ? .first : .queued
        }
    }

    /// Takes the whole batch. The next letter posted is a ``Receipt/first`` again.
    public func take() -> [Letter] {
        content.withLock { content in
            defer { content.letters = [] }
            return content.letters
        }
    }

    /// Refuses letters from now on, and gives back those that nobody has taken.
    public func close() -> [Letter] {
        content.withLock { content in
            content.isClosed = true
            defer { content.letters = [] }
            return content.letters
        }
    }
}

/// A queue that takes at the back and gives at the front, both in constant time (amortised).
public struct Fifo<Element> {
    private var elements: [Element?] = []
    private var head = 0

    /// An empty queue.
    public init() {}

    /// Whether nothing is in it.
    public var isEmpty: Bool { head == elements.count }
    /// The element at the front.
    public var first: Element? { isEmpty ? nil : elements[head] }

    /// Puts an element at the back.
    public mutating func append(_ element: Element) { elements.append(element) }

    /// Takes the element at the front; nil when there is none.
    public mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        defer {
            elements[head] = nil
            head += 1
            if head == elements.count {
                elements.removeAll(keepingCapacity: head < 4096)
                head = 0
            } else if head >= 4096, head * 2 > elements.count {
                elements.removeFirst(head)
                head = 0
            }
        }
        return elements[head]
    }

    /// The elements from the front to the back.
    public var all: some Sequence<Element> { elements[head...].lazy.compactMap { $0 } }
}

extension Fifo: Sendable where Element: Sendable {}
