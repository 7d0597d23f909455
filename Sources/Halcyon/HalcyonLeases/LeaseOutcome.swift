/// What came of the work under a lease, as those are told who wait for it. It is a hint: whoever misses it looks again soon.
public enum LeaseOutcome: Hashable, Sendable {
    /// The product is there.
    case stored
    /// The product cannot be shared: whoever wants it makes it.
    case unshared
    /// It cannot be made, for a reason that holds for everybody; the text says which, in words of those who wait.
    case failed(String)
    /// The work was given up, or failed for a reason of the worker's own: somebody else may try.
    case givenUp

    var text: String {
        switch self {
        case .stored: "stored"
        case .unshared: "unshared"
        case .failed(let reason): "failed \(reason)"
        case .givenUp: "given-up"
        }
    }

    init?(text: Substring) {
        let parts = text.split(separator: " ", maxSplits: 1)
        switch (parts.first, parts.count) {
        case ("stored", 1): self = .stored
        case ("unshared", 1): self = .unshared
        case ("failed", 2): self = .failed(String(parts[1]))
        case ("given-up", 1): self = .givenUp
        default: return nil
        }
    }
}

/// A message to a process.
enum LeaseMessage: Hashable, Sendable {
    /// The work under a lease has ended.
    case ended(lease: String, fence: Int, LeaseOutcome)
    /// The work under a lease of this process is more urgent for somebody who waits.
    case raise(lease: String, level: Int)

    init?(_ payload: [UInt8]) {
        let text = String(decoding: payload, as: UTF8.self)
        let parts = text.split(separator: " ", maxSplits: 3)
        guard parts.count >= 3 else { return nil }
        let lease = String(parts[1])
        switch parts[0] {
        case "ended":
            guard parts.count == 4, let fence = Int(parts[2]), let outcome = LeaseOutcome(text: parts[3]) else {
                return nil
            }
            self = .ended(lease: lease, fence: fence, outcome)
        case "raise":
            guard let level = Int(parts[2]) else { return nil }
            self = .raise(lease: lease, level: level)
        default: return nil
        }
    }
}
