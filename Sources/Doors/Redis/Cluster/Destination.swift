/// Which node of a cluster a command belongs to.
enum Destination: Hashable {
    /// The master of this slot.
    case slot(HashSlot)
    /// Any master.
    case anyNode

    /// - Throws: ``RedisError/Code/misuse`` when the keys lie in several slots, or the command has no place in a cluster
    ///   without a word on which node is meant.
    init(of command: [RedisArgument]) throws(RedisError) {
        self = try Self.known(command) ?? .anyNode
    }

    /// The destination of commands that are a transaction: that of its keys.
    /// - Throws: as ``init(of:)``.
    init(ofTransaction commands: ArraySlice<[RedisArgument]>) throws(RedisError) {
        var found: Destination?
        for command in commands {
            guard case .slot(let slot) = try Self.known(command) else { continue }
            guard found == nil || found == .slot(slot) else { throw .manySlots("a transaction") }
            found = .slot(slot)
        }
        self = found ?? .anyNode
    }

    /// Nil for a word of a transaction.
    private static func known(_ command: [RedisArgument]) throws(RedisError) -> Destination? {
        let name = command[0].text
        guard let places = KeyPlaces(of: name) else {
            throw RedisError(.misuse, "it is not known where the keys of \(name) are: it cannot be sent to a cluster")
        }
        switch places {
        case .transaction: return nil
        case .anyNode: return .anyNode
        case .oneNode:
            throw RedisError(
                .misuse, "\(name) is about one node of the cluster: say which, or send it to every master")
        case .words(let first, let last, _) where first == last:
            return .slot(HashSlot(of: try places.keys(of: command)[first]))
        case .words, .counted:
            var slot: HashSlot?
            for key in try places.keys(of: command) {
                let next = HashSlot(of: key)
                guard slot == nil || slot == next else { throw .manySlots(name) }
                slot = next
            }
            return slot.map { .slot($0) } ?? .anyNode
        }
    }
}

/// A pipeline, cut into what a cluster can answer by itself: single commands, and transactions whole.
struct PipelineCut {
    /// Commands with neighbouring places in the pipeline, and where they go.
    struct Piece: Hashable {
        let range: Range<Int>
        let destination: Destination
    }

    let pieces: [Piece]

    /// - Throws: ``RedisError/Code/misuse`` as ``Destination/init(of:)``, and for a transaction that has no end or no beginning.
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
                        range: first..<index + 1, destination: try Destination(ofTransaction: commands[first...index])))
            case .some: throw RedisError(.misuse, "MULTI inside MULTI")
            case nil where start == nil:
                pieces.append(Piece(range: index..<index + 1, destination: try Destination(of: command)))
            case nil: break
            }
        }
        guard start == nil else { throw RedisError(.misuse, "MULTI without EXEC") }
        self.pieces = pieces
    }

    private static func transactionWord(_ command: [RedisArgument]) -> String? {
        let name = command[0].text
        return KeyPlaces(of: name) == .transaction ? name.uppercased() : nil
    }
}

extension RedisError {
    fileprivate static func manySlots(_ what: String) -> RedisError {
        RedisError(
            .misuse,
            "the keys of \(what) lie in several slots of the cluster: give them one hash tag, or use a pipeline")
    }
}

/// What a node of a cluster says in place of a reply when a command must go elsewhere, or must be tried again (Redis Cluster
/// specification, "Redirection and resharding"). Nothing has run then.
enum Redirection: Hashable {
    /// The slot is served there from now on.
    case moved(HashSlot, to: RedisAddress)
    /// This command alone goes there, behind ASKING: the slot is on its way.
    case ask(RedisAddress)
    /// In a while. Who serves what may have changed meanwhile.
    case later

    /// Nil for every other error.
    /// - Parameter asked: who said it. Where it names no host, its own is meant.
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
            // A node whose name is not known (`?`) cannot be dialled, but the next map may know more.
            guard host != "?" else { return nil }
            let address = RedisAddress.tcp(host: host.isEmpty ? asked.host ?? "" : String(host), port: port)
            self = code == "ASK" ? .ask(address) : .moved(slot, to: address)
        default: return nil
        }
    }

    /// What the replies to a transaction mean for all of it. A transaction is asked for whole: when one of its commands was
    /// refused, EXEC ran none (EXECABORT), and it is tried whole again. There is no ASKING for several commands.
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

/// Puts the replies to the pieces of a pipeline back in order.
final class Gathering {
    private let call: Call
    private var replies: [RedisValue?]
    private var left: Int
    /// Why a piece has no reply at all.
    private var failure: RedisError?
    private var hasReplies = false

    init(for call: Call, of count: Int, pieces: Int) {
        self.call = call
        replies = Array(repeating: nil, count: count)
        left = pieces
    }

    /// Whether nobody waits for the pipeline any more.
    var isAnswered: Bool { call.isAnswered }

    /// A piece has come to its end; the last one answers the call.
    func put(_ outcome: Call.Outcome, at range: Range<Int>) {
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
