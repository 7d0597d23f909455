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
