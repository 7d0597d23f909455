import Threads

extension RedisEndpoint {
    /// Leads a session to the server that all is to be asked of: the only one, the master, or any node of a cluster.
    func guide(_ settings: RedisSettings, on loop: EventLoop) -> any Guide {
        switch servers {
        case .one(let address): FixedGuide(Server(address: address, login: login))
        case .cluster(let seeds): AnyNodeGuide(seeds, login)
        case .sentinels(let sentinels, let service):
            SentinelGuide(
                to: service, login, asking: sentinels.map { Server(address: $0, login: sentinelLogin) }, settings,
                on: loop)
        }
    }

    /// Whether sentinels say where the master is.
    var isBehindSentinels: Bool { if case .sentinels = servers { true } else { false } }
}
