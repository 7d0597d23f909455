import Testing

@testable import Redis

@Suite struct RedirectionTests {
    private let asked = RedisAddress.tcp(host: "10.0.0.9", port: 7000)

    private func redirection(_ reply: String) -> Redirection? { Redirection(RedisError(reply: reply), asked: asked) }

    @Test func parsesRedirections() {
        let slot = HashSlot(number: 3999)!
        #expect(redirection("MOVED 3999 127.0.0.1:6381") == .moved(slot, to: .tcp(host: "127.0.0.1", port: 6381)))
        #expect(redirection("MOVED 3999 :6381") == .moved(slot, to: .tcp(host: "10.0.0.9", port: 6381)))
        #expect(redirection("MOVED 3999 ::1:6381") == .moved(slot, to: .tcp(host: "::1", port: 6381)))
        #expect(redirection("ASK 3999 a.example:6381") == .ask(.tcp(host: "a.example", port: 6381)))
        for text in ["TRYAGAIN x", "CLUSTERDOWN The cluster is down", "LOADING x", "MASTERDOWN x", "READONLY x"] {
            #expect(redirection(text) == .later)
        }
    }

    @Test(arguments: [
        "ERR x", "OOM x", "MOVED", "MOVED 3999", "MOVED x 127.0.0.1:1", "MOVED 16384 127.0.0.1:1", "MOVED 1 127.0.0.1",
        "MOVED 1 127.0.0.1:0", "MOVED 1 ?:1", "ASK 1 127.0.0.1:70000",
    ])
    func ignoresOtherErrors(reply: String) {
        #expect(redirection(reply) == nil)
    }

    @Test func redirectsOnlyWholeTransactions() {
        func transaction(_ replies: RedisValue...) -> Redirection? { Redirection(transaction: replies, asked: asked) }
        func error(_ text: String) -> RedisValue { .error(RedisError(reply: text)) }
        let (ok, queued) = (RedisValue.status("OK"), RedisValue.status("QUEUED"))
        let moved = Redirection.moved(HashSlot(number: 1)!, to: .tcp(host: "a", port: 1))
        #expect(transaction(ok, error("MOVED 1 a:1"), error("MOVED 1 a:1"), error("EXECABORT x")) == moved)
        #expect(transaction(ok, error("ASK 1 a:1"), error("EXECABORT x")) == .later)
        #expect(transaction(ok, queued, error("MOVED 1 a:1")) == moved)
        #expect(transaction(ok, queued, error("ASK 1 a:1")) == .later)
        // A transaction that has run is not repeated.
        #expect(transaction(ok, queued, .array([error("READONLY x")])) == nil)
        #expect(transaction(ok, error("ERR x"), error("EXECABORT x")) == nil)
    }

    @Test func limitsHopsAndPostponements() {
        var budget = RedirectionBudget()
        let hops = (0..<20).filter { _ in budget.mayHop() }.count
        #expect(hops == 16)
        let start = ContinuousClock.now
        let postponements = [0, 100, 499, 500].map {
            budget.mayPostpone(start + .milliseconds($0), timeout: .milliseconds(500))
        }
        #expect(postponements == [true, true, true, false])
    }
}
