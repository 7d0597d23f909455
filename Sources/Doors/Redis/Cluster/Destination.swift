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
