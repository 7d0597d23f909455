import Concurrency

/// The handler of a cluster's client. It sends each command to the primary that serves its keys, follows redirections,
/// and maintains the slot map (Redis Cluster specification,
/// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/).
///
/// Pure values make the decisions (``RoutingTarget``, ``SlotMap``, ``Redirection``, ``RedirectionBudget``,
/// ``TopologyRefresh``, ``ClusterHealth``), and this class carries them out. All nodes share the loop.
final class Cluster: CommandHandler {
    private let seeds: [RedisAddress]
    private let login: Login
    private let settings: RedisSettings
    private let loop: EventLoop
    private let onStateChange: @Sendable (RedisState) -> Void

    private var map: SlotMap?
    private var nodes: [RedisAddress: ClusterNode] = [:]
    /// Commands that arrived while the slot map is unknown.
    private let lobby: PendingCommandQueue
    /// Commands to retry, with the outcomes they have if retries are exhausted.
    private var resting: [(call: PendingCommand, outcome: PendingCommand.Outcome)] = []
    private var survey = TopologyRefresh()
    private var health = ClusterHealth()
    /// The timer of the next refresh, if one is due.
    private var nextSurvey: EventLoop.Timer?
    private var surveyBackoff: Backoff
    private var lastSurvey: ContinuousClock.Instant?
    private var isClosed = false

    init(
        _ seeds: [RedisAddress], _ login: Login, _ settings: RedisSettings, on loop: EventLoop,
        onStateChange: @escaping @Sendable (RedisState) -> Void
    ) {
        self.seeds = seeds
        self.login = login
        self.settings = settings
        self.loop = loop
        self.onStateChange = onStateChange
        lobby = PendingCommandQueue(settings, on: loop)
        surveyBackoff = settings.reconnectBackoff(upTo: min(settings.reconnectDelay.upperBound, .seconds(1)))
    }

    func open() { startTopologyRefresh() }

    func close() {
        isClosed = true
        setNextSurvey(nil)
        let outcome = PendingCommand.Outcome.failure(RedisError(.closed, "the client was closed"))
        for call in lobby.takeAll() + resting.map(\.call) { call.answer(outcome) }
        resting = []
        for node in nodes.values { node.close() }
        nodes = [:]
    }

    var masters: [RedisAddress] { map?.masters ?? [] }

    // MARK: Commands

    func accept(_ call: PendingCommand, _ now: ContinuousClock.Instant) {
        do throws(RedisError) {
            switch call.content {
            case .command(let command):
                if call.node == nil { call.destination = try RoutingTarget(of: command) }
                route(call, now)
            case .pipeline(let commands): for piece in try pieces(of: call, commands) { route(piece, now) }
            }
        } catch {
            call.answer(.failure(error))
        }
    }

    func flush(_ now: ContinuousClock.Instant) { for node in nodes.values { node.queue.flush(now) } }

    private func pieces(of call: PendingCommand, _ commands: [[RedisArgument]]) throws(RedisError) -> [PendingCommand] {
        let cut = try PipelineSplitter(commands).pieces
        let gathering = PipelineCollector(for: call, of: commands.count, pieces: cut.count)
        return cut.map { piece in
            let content: PendingCommand.Content =
                piece.range.count == 1
                ? .command(commands[piece.range.lowerBound]) : .pipeline(Array(commands[piece.range]))
            return PendingCommand(content, to: piece.destination, for: gathering, at: piece.range)
        }
    }

    /// Passes a command to the node that it belongs to.
    private func route(_ call: PendingCommand, _ now: ContinuousClock.Instant) {
        if let named = call.node { return node(at: named).queue.accept(call, now) }
        guard let map else { return lobby.admit(call, now) }
        switch call.destination {
        case .slot(let slot):
            if let master = map.master(of: slot) { return node(at: master).queue.accept(call, now) }
            let error = RedisError(.unavailable, "no primary serves hash slot \(slot.number)")
            if !rest(call, .failure(error), now) { call.answer(.failure(error)) }
        case .anyNode:
            let open = map.masters.first { nodes[$0]?.isOpen == true }
            let untried = map.masters.first { health.troubles[$0] == nil }
            if let master = open ?? untried ?? map.masters.first {
                node(at: master).queue.accept(call, now)
            } else {
                lobby.admit(call, now)
            }
        }
    }

    private func node(at address: RedisAddress) -> ClusterNode {
        if let node = nodes[address] { return node }
        let node = ClusterNode(address, of: self, login, settings, on: loop)
        nodes[address] = node
        return node
    }

    // MARK: Redirections

    /// Follows a redirection. Returns true if the command is sent elsewhere or retried later, instead of completing
    /// with this outcome.
    func follows(_ redirection: Redirection, with call: PendingCommand, insteadOf outcome: PendingCommand.Outcome)
        -> Bool
    {
        guard !call.isAnswered else { return false }
        let now = ContinuousClock.now
        switch redirection {
        case .moved(let slot, let master):
            map?.move(slot, to: master)
            surveySoon()
            return hop(call, to: master, now)
        case .ask(let node):
            call.asksFirst = true
            return hop(call, to: node, now)
        case .later:
            surveySoon()
            return rest(call, outcome, now)
        }
    }

    private func hop(_ call: PendingCommand, to address: RedisAddress, _ now: ContinuousClock.Instant) -> Bool {
        guard call.detour.mayHop() else { return false }
        let queue = node(at: address).queue
        queue.accept(call, now)
        queue.flush(now)
        return true
    }

    private func rest(_ call: PendingCommand, _ outcome: PendingCommand.Outcome, _ now: ContinuousClock.Instant) -> Bool
    {
        guard call.detour.mayPostpone(now, timeout: settings.outageGrace) else { return false }
        resting.append((call, outcome))
        if resting.count == 1 {
            loop.schedule(after: settings.reconnectDelay.lowerBound) { [weak self] in self?.endRest() }
        }
        return true
    }

    private func endRest() {
        let now = ContinuousClock.now
        let rested = resting
        resting = []
        for (call, outcome) in rested where !call.isAnswered {
            if call.detour.mayPostpone(now, timeout: settings.outageGrace) {
                route(call, now)
            } else {
                call.answer(outcome)
            }
        }
        flush(now)
    }

    // MARK: Nodes

    func opened(_ address: RedisAddress) {
        health.forget(address)
        reportChange()
    }

    func lost(_ address: RedisAddress, _ error: RedisError) {
        guard !isClosed else { return }
        health.note(RedisError(error.code, "\(address): \(error.message)"), at: address)
        if survey.asked == address { goOn(survey.failed(address)) }
        if map?.masters.contains(address) == true { surveySoon() }
        reportChange()
    }

    private func reportChange() {
        if let state = health.removeChange() { onStateChange(state) }
    }

    // MARK: Slot map

    /// Schedules a refresh of the slot map, which may be outdated. Has no effect if one is running or due. Refreshes
    /// are spaced by a minimum delay.
    private func surveySoon() {
        guard !isClosed, survey.asked == nil, nextSurvey == nil else { return }
        let now = ContinuousClock.now
        let earliest = lastSurvey.map { $0 + settings.reconnectDelay.lowerBound } ?? now
        setNextSurvey(
            loop.schedule(after: max(.zero, now.duration(to: earliest))) { [weak self] in self?.startTopologyRefresh() }
        )
    }

    private func setNextSurvey(_ timer: EventLoop.Timer?) {
        if let nextSurvey { loop.cancel(nextSurvey) }
        nextSurvey = timer
    }

    /// Asks nodes with a connection first, and unavailable nodes last.
    private func startTopologyRefresh() {
        setNextSurvey(nil)
        lastSurvey = .now
        let known = nodes.keys.shuffled() + (map?.masters ?? []).shuffled() + (map?.replicas ?? []).shuffled() + seeds
        let open = known.filter { nodes[$0]?.isOpen == true }
        let untried = known.filter { nodes[$0]?.isOpen != true && health.troubles[$0] == nil }
        if let first = survey.begin(open + untried + known) { ask(first) }
    }

    private func ask(_ address: RedisAddress) {
        let now = ContinuousClock.now
        let queue = node(at: address).queue
        let call = PendingCommand(["CLUSTER", "SLOTS"], to: address) { [weak self] outcome in
            self?.surveyed(address, outcome)
        }
        queue.accept(call, now)
        queue.flush(now)
    }

    private func surveyed(_ address: RedisAddress, _ outcome: PendingCommand.Outcome) {
        guard !isClosed else { return }
        do throws(RedisError) {
            adopt(try SlotMap(try outcome.get(), asked: address))
        } catch {
            guard survey.asked == address else { return }
            health.recordMissingMap(RedisError(error.code, "\(address): \(error.message)"))
            goOn(survey.failed(address))
        }
    }

    /// Asks the next node, or schedules another refresh if all have been asked.
    private func goOn(_ next: RedisAddress?) {
        if let next { return ask(next) }
        let error = health.mapTrouble ?? seeds.compactMap { health.troubles[$0] }.first
        if let error {
            health.recordMissingMap(error)
            lobby.note(error, hadConnection: false)
        }
        reportChange()
        surveyLater()
    }

    private func surveyLater() {
        setNextSurvey(loop.schedule(after: surveyBackoff.next()) { [weak self] in self?.startTopologyRefresh() })
    }

    private func adopt(_ new: SlotMap) {
        survey.answered()
        map = new
        health.recordMap(of: new.masters)
        let now = ContinuousClock.now
        var homeless = lobby.takeAll()
        for (address, node) in nodes where !new.masters.contains(address) { homeless += node.queue.removeMovable() }
        for call in homeless { route(call, now) }
        flush(now)
        closeIdleNodes()
        reportChange()
        if health.isImpaired || !new.isComplete { surveyLater() } else { surveyBackoff.reset() }
    }

    /// Closes connections to nodes that serve no slots, once they have no commands in flight.
    private func closeIdleNodes() {
        guard let map, !isClosed else { return }
        let extra = nodes.filter { !map.masters.contains($0.key) }
        for (address, node) in extra where node.queue.isIdle {
            node.close()
            nodes[address] = nil
            health.forget(address)
        }
        if extra.contains(where: { nodes[$0.key] != nil }) {
            loop.schedule(after: settings.commandTimeout) { [weak self] in self?.closeIdleNodes() }
        }
    }
}

/// The overall state of the connections to a cluster.
///
/// A pure value.
struct ClusterHealth: Hashable {
    /// The primaries that serve slots; empty while none is known.
    var masters: Set<RedisAddress> = []
    /// The last connection error of each unavailable node.
    private(set) var troubles: [RedisAddress: RedisError] = [:]
    /// The reason for which the slot map is unknown.
    private(set) var mapTrouble: RedisError?
    private var told: RedisState?

    /// Records that a node is unavailable.
    mutating func note(_ error: RedisError, at node: RedisAddress) { troubles[node] = error }

    /// Records that a node is available, or is no longer part of the cluster.
    mutating func forget(_ node: RedisAddress) { troubles[node] = nil }

    /// Records that no node returned the slot map.
    mutating func recordMissingMap(_ error: RedisError) { mapTrouble = error }

    /// Records a new slot map.
    mutating func recordMap(of masters: [RedisAddress]) {
        self.masters = Set(masters)
        mapTrouble = nil
    }

    /// True if the slot map or the connection to a primary is missing, which the next refresh may change.
    var isImpaired: Bool { mapTrouble != nil || masters.contains { troubles[$0] != nil } }

    /// The current state; nil while nothing is known.
    private var state: RedisState? {
        guard !masters.isEmpty else { return mapTrouble.map { .lost($0) } }
        let away = masters.filter { troubles[$0] != nil }.sorted { "\($0)" < "\($1)" }
        guard let first = away.first.flatMap({ troubles[$0] }) else { return .connected }
        return away.count == masters.count ? .lost(first) : .impaired(first)
    }

    /// Returns the state if its kind differs from the last one returned.
    mutating func removeChange() -> RedisState? {
        guard let state else { return nil }
        switch (told, state) {
        case (.connected, .connected), (.impaired, .impaired), (.lost, .lost): return nil
        default:
            told = state
            return state
        }
    }
}

/// The order in which nodes are asked for the slot map: one at a time, until one has answered.
///
/// A pure value: it names the node to ask, and records the result.
struct TopologyRefresh: Hashable {
    /// The node that is being asked.
    private(set) var asked: RedisAddress?
    private var candidates: ArraySlice<RedisAddress> = []

    /// Starts with the first of these nodes, each of which is asked once. Returns nil if a node is being asked already,
    /// or if there are none.
    mutating func begin(_ nodes: [RedisAddress]) -> RedisAddress? {
        guard asked == nil else { return nil }
        var known: Set<RedisAddress> = []
        candidates = nodes.filter { known.insert($0).inserted }[...]
        asked = candidates.popFirst()
        return asked
    }

    /// Records that a node did not answer. Returns the next node to ask, or nil if none is left or another node is
    /// being asked.
    mutating func failed(_ node: RedisAddress) -> RedisAddress? {
        guard asked == node else { return nil }
        asked = candidates.popFirst()
        return asked
    }

    /// Records that a node has answered.
    mutating func answered() { (asked, candidates) = (nil, []) }
}
