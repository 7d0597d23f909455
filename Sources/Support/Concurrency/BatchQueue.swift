/// A queue of elements from many threads for one reader, which drains it in batches, in the order of enqueuing.
///
/// The reader is woken once per batch, by the caller that enqueues into an empty queue.
public final class BatchQueue<Element: Sendable>: Sendable {
    /// The result of enqueuing an element.
    public enum EnqueueResult: Sendable {
        /// The element is the first of a batch. The caller must wake the reader.
        case first
        /// The element joins a batch whose reader has been woken.
        case queued
        /// The queue is full and the element was rejected.
        case full
        /// The queue is closed and the element was rejected.
        case closed
    }

    private struct Content {
        var messages: [Element] = []
        var isClosed = false
    }

    private let content = Lock(Content())
    private let limit: Int

    /// Creates an empty, open queue.
    /// - Parameter limit: The maximum number of elements in a batch.
    public init(limit: Int = .max) { self.limit = limit }

    /// Enqueues an element, from any thread.
    public func enqueue(_ element: Element) -> EnqueueResult {
        content.withLock { content in
            if content.isClosed { return .closed }
            if content.messages.count >= limit { return .full }
            content.messages.append(element)
            return content.messages.count == 1 ? .first : .queued
        }
    }

    /// Removes and returns the whole batch. The next element enqueued is ``EnqueueResult/first`` again.
    public func drain() -> [Element] {
        content.withLock { content in
            defer { content.messages = [] }
            return content.messages
        }
    }

    /// Closes the queue and returns the elements that were not drained.
    public func close() -> [Element] {
        content.withLock { content in
            content.isClosed = true
            defer { content.messages = [] }
            return content.messages
        }
    }
}

/// A first-in-first-out queue with amortized constant time for both ends.
public struct Deque<Element> {
    private var elements: [Element?] = []
    private var head = 0

    /// Creates an empty queue.
    public init() {}

    /// True if the queue is empty.
    public var isEmpty: Bool { head == elements.count }
    /// The element at the front.
    public var first: Element? { isEmpty ? nil : elements[head] }

    /// Appends an element at the back.
    public mutating func append(_ element: Element) { elements.append(element) }

    /// Removes and returns the element at the front; nil if the queue is empty.
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

extension Deque: Sendable where Element: Sendable {}
