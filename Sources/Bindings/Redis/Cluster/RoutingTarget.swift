/// The node of a cluster that a command is sent to.
enum RoutingTarget: Hashable {
    /// The primary of this hash slot.
    case slot(HashSlot)
    /// Any primary.
    case anyNode

    /// Finds the target of a command.
    /// - Throws: ``RedisError/Code/misuse`` if the keys are in several slots, or if the command must name a node of the
    ///   cluster.
    init(of command: [RedisArgument]) throws(RedisError) {
        self = try Self.known(command) ?? .anyNode
    }

    /// Finds the target of a transaction, which is that of its keys.
    /// - Throws: the errors of ``init(of:)``.
    init(ofTransaction commands: ArraySlice<[RedisArgument]>) throws(RedisError) {
        var found: RoutingTarget?
        for command in commands {
            guard case .slot(let slot) = try Self.known(command) else { continue }
            guard found == nil || found == .slot(slot) else { throw .manySlots("a transaction") }
            found = .slot(slot)
        }
        self = found ?? .anyNode
    }

    /// Returns nil for a command that delimits a transaction.
    private static func known(_ command: [RedisArgument]) throws(RedisError) -> RoutingTarget? {
        let name = command[0].text
        guard let specification = KeySpecification(of: name) else {
            throw RedisError(.misuse, "cannot send \(name) to a cluster: the positions of its keys are unknown")
        }
        switch specification {
        case .transaction: return nil
        case .anyNode: return .anyNode
        case .oneNode:
            throw RedisError(
                .misuse, "\(name) concerns a single node of the cluster; name the node, or send it to all primaries")
        case .words(let first, let last, _) where first == last:
            return .slot(HashSlot(of: try specification.keys(of: command)[first]))
        case .words, .counted:
            var slot: HashSlot?
            for key in try specification.keys(of: command) {
                let next = HashSlot(of: key)
                guard slot == nil || slot == next else { throw .manySlots(name) }
                slot = next
            }
            return slot.map { .slot($0) } ?? .anyNode
        }
    }
}

/// A pipeline, split into parts that a cluster can answer separately: single commands and whole transactions.
struct PipelineSplitter {
    /// Consecutive commands of the pipeline with the same target.
    struct Piece: Hashable {
        let range: Range<Int>
        let destination: RoutingTarget
    }

    let pieces: [Piece]

    /// Splits a pipeline.
    /// - Throws: ``RedisError/Code/misuse`` as ``RoutingTarget/init(of:)`` does, and for a transaction without an end
    ///   or a beginning.
    init(_ commands: [[RedisArgument]]) throws(RedisError) {
        var pieces: [Piece] = []
        var start: Int?
        for (index, command) in commands.enumerated() {
            switch Self.transactionWord(command) {
            case "MULTI" where start == nil: start = index
            case "EXEC", "DISCARD":
                guard let first = start else { throw RedisError(.misuse, "EXEC or DISCARD without MULTI") }
                start = nil
                pieces.append(
                    Piece(
                        range: first..<index + 1, destination: try RoutingTarget(ofTransaction: commands[first...index])
                    ))
            case .some: throw RedisError(.misuse, "MULTI inside MULTI")
            case nil where start == nil:
                pieces.append(Piece(range: index..<index + 1, destination: try RoutingTarget(of: command)))
            case nil: break
            }
        }
        guard start == nil else { throw RedisError(.misuse, "MULTI without EXEC") }
        self.pieces = pieces
    }

    private static func transactionWord(_ command: [RedisArgument]) -> String? {
        let name = command[0].text
        return KeySpecification(of: name) == .transaction ? name.uppercased() : nil
    }
}

extension RedisError {
    fileprivate static func manySlots(_ what: String) -> RedisError {
        RedisError(
            .misuse,
            "the keys of \(what) are in several hash slots; give them one hash tag, or use a pipeline")
    }
}

/// A node's request to send a command to another node, or to retry it later (Redis Cluster specification, "Redirection
/// and resharding"). The command has not run.
enum Redirection: Hashable {
    /// The slot is permanently served by another node.
    case moved(HashSlot, to: RedisAddress)
    /// Only this command goes to another node, after ASKING, because the slot is migrating.
    case ask(RedisAddress)
    /// The command must be retried later. The slot map may have changed.
    case later

    /// Parses an error reply. Nil for every other error.
    /// - Parameter asked: the node that replied. A redirection without a host refers to the host of this node.
    init?(_ error: RedisError, asked: RedisAddress) {
        guard case .server(let code) = error.code else { return nil }
        switch code {
        case "TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY": self = .later
        case "MOVED", "ASK":
            let words = error.message.split(separator: " ")
            guard words.count == 3, let slot = Int(words[1]).flatMap(HashSlot.init(number:)),
                let colon = words[2].lastIndex(of: ":"),
                let port = UInt16(words[2][words[2].index(after: colon)...]), port > 0
            else { return nil }
            let host = words[2][..<colon]
            // A node with an unknown name (`?`) cannot be connected to, but the next map may contain its name.
            guard host != "?" else { return nil }
            let address = RedisAddress.tcp(host: host.isEmpty ? asked.host ?? "" : String(host), port: port)
            self = code == "ASK" ? .ask(address) : .moved(slot, to: address)
        default: return nil
        }
    }

    /// Interprets the replies to a transaction, which is redirected as a whole. If one of its commands was rejected,
    /// EXEC ran none (EXECABORT), and the whole transaction is retried. ASKING does not apply to several commands.
    init?(transaction replies: [RedisValue], asked: RedisAddress) {
        guard case .error(let end)? = replies.last else { return nil }
        if let whole = Redirection(end, asked: asked) {
            self = whole.isAsk ? .later : whole
            return
        }
        guard end.code == .server("EXECABORT") else { return nil }
        for case .error(let error) in replies {
            guard let part = Redirection(error, asked: asked) else { continue }
            self = part.isAsk ? .later : part
            return
        }
        return nil
    }

    private var isAsk: Bool { if case .ask = self { true } else { false } }
}

/// Collects the replies to the parts of a pipeline and restores their order.
final class PipelineCollector {
    private let call: PendingCommand
    private var replies: [RedisValue?]
    private var left: Int
    /// The first error of a part that has no reply at all.
    private var failure: RedisError?
    private var hasReplies = false

    init(for call: PendingCommand, of count: Int, pieces: Int) {
        self.call = call
        replies = Array(repeating: nil, count: count)
        left = pieces
    }

    /// True if no caller waits for the pipeline.
    var isAnswered: Bool { call.isAnswered }

    /// Stores the outcome of a part. The last part completes the pipeline.
    func put(_ outcome: PendingCommand.Outcome, at range: Range<Int>) {
        switch outcome {
        case .success(.array(let several)) where several.count == range.count && range.count > 1:
            hasReplies = true
            for (index, reply) in zip(range, several) { replies[index] = reply }
        case .success(let reply):
            hasReplies = true
            replies[range.lowerBound] = reply
        case .failure(let error):
            for index in range { replies[index] = .error(error) }
            if case .server = error.code { hasReplies = true } else { failure = failure ?? error }
        }
        left -= 1
        guard left == 0 else { return }
        if let failure, !hasReplies {
            call.answer(.failure(failure))
        } else {
            call.answer(.success(.array(replies.map { $0 ?? .null })))
        }
    }
}
