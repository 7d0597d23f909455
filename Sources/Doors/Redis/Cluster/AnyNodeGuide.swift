/// Leads to any node of a cluster, another one each time: what is published reaches them all.
final class AnyNodeGuide: Guide {
    private let login: Login
    private let seeds: [RedisAddress]
    /// What the last node knew of the others.
    private var known: Set<RedisAddress> = []

    init(_ seeds: [RedisAddress], _ login: Login) {
        self.seeds = seeds
        self.login = login
    }

    func findServers(_ done: @escaping (Result<[Server], RedisError>) -> Void) {
        let others = known.subtracting(seeds)
        done(.success((seeds.shuffled() + others.shuffled()).map { Server(address: $0, login: login) }))
    }

    var question: [RedisArgument]? { ["CLUSTER", "SLOTS"] }

    func judge(_ answer: RedisValue, of server: Server) throws(RedisError) {
        let map = try SlotMap(answer, asked: server.address)
        known = map.replicas.union(map.masters)
    }
}
