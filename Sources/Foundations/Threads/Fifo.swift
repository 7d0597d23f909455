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
