/// The leases and products of one source as a pure value that implements the scripts (`LeaseScripts`, `FencingTokens`).
///
/// `LeaseTableTests` compares it with the scripts on a real Redis. Items are numbers from 0.
struct LeaseTable: Hashable {
    struct Owner: Hashable {
        var process: Int
        var attempt: Int
    }

    struct LeaseOwner: Hashable {
        var owner: Owner
        var fence: Int
        var level: Int
        /// The expiry, in milliseconds of the server's clock.
        var until: Int
    }

    struct Waiter: Hashable {
        var owner: Owner
        /// The time of its last request, in milliseconds.
        var lastRequest: Int
    }

    /// The last attempt that acquired a lease.
    struct Attempt: Hashable {
        /// The number of earlier attempts that never ended.
        var deaths: Int
        var fence: Int
        var isOpen = true
    }

    struct Item: Hashable {
        var holder: LeaseOwner?
        var attempt: Attempt?
        /// The waiters, by their first request since they last stopped waiting.
        var waiters: [Waiter] = []
        /// The fence of the stored product.
        var product: Int?
        var floor = 0
    }

    enum KnownVersion: Hashable { case nothing, version(Int), anything }

    enum AcquireReply: Hashable { case available, acquired(fence: Int, deaths: Int), heldByOther(LeaseOwner) }

    enum Outcome: Hashable { case stored, failed, givenUp }

    struct Message: Hashable {
        enum Text: Hashable { case ended(fence: Int, Outcome), escalate(level: Int) }
        var process: Int
        var item: Int
        var text: Text
    }

    var items: [Item]
    /// The highest granted fence; 0 if unknown.
    var last = 0
    /// The floor of all items.
    var floor = 0
    /// The server's clock in milliseconds, and microseconds beyond them.
    var (now, tick) = (0, 0)
    var mutation: Mutation?

    /// The time in milliseconds after which an attempt that has not asked again is no longer a waiter.
    static let waiterTimeout = 600_000

    private var micros: Int { now * 1000 + tick }

    init(items: Int, mutation: Mutation? = nil) {
        self.items = Array(repeating: Item(), count: items)
        self.mutation = mutation
    }

    // MARK: Scripts

    mutating func enter(
        _ owner: Owner, _ wanted: [(item: Int, seen: KnownVersion)], level: Int = 1, duration: Int = 0
    ) -> (answers: [AcquireReply], messages: [Message]) {
        var answers: [AcquireReply] = []
        var messages: [Message] = []
        for (item, seen) in wanted {
            if isAvailable(item, seen), mutation != .skipsAvailabilityCheck {
                leave(item, owner)
                answers.append(.available)
                continue
            }
            var holder = items[item].holder
            if let current = holder, current.fence < max(floor, items[item].floor), mutation != .waitsForPurgedWork {
                holder = nil
            }
            if holder?.owner == owner {
                holder!.until = now + duration
                items[item].holder = holder
                answers.append(.acquired(fence: holder!.fence, deaths: known(item)?.deaths ?? 0))
            } else if var holder {
                addWaiter(item, owner)
                if level < holder.level {
                    holder.level = level
                    items[item].holder = holder
                    messages.append(Message(process: holder.owner.process, item: item, text: .escalate(level: level)))
                }
                answers.append(.heldByOther(holder))
            } else {
                let above = mutation == .ignoresFenceOfProduct ? 0 : (items[item].product ?? 0) + 1
                last = max(last + 1, micros, above)
                let deaths = deaths(before: item)
                items[item].attempt = Attempt(deaths: deaths, fence: last)
                items[item].holder = LeaseOwner(owner: owner, fence: last, level: level, until: now + duration)
                items[item].waiters.removeAll { $0.owner == owner }
                answers.append(.acquired(fence: last, deaths: deaths))
            }
        }
        return (answers, messages)
    }

    /// Returns the last attempt since the last purge.
    private func known(_ item: Int) -> Attempt? {
        items[item].attempt.flatMap {
            $0.fence >= max(floor, items[item].floor) || mutation == .countsCrashesBeforePurge ? $0 : nil
        }
    }

    private func deaths(before item: Int) -> Int {
        guard let attempt = known(item) else { return 0 }
        if mutation == .takeoverForgetsCrashes { return attempt.isOpen ? 1 : 0 }
        return attempt.deaths + (attempt.isOpen ? 1 : 0)
    }

    /// Records that the owner of an attempt ended it.
    /// - Parameter deaths: the number of crashes to record; nil for as many as before the attempt.
    private mutating func endAttempt(_ item: Int, _ fence: Int, _ deaths: Int?) {
        guard let attempt = items[item].attempt, attempt.isOpen, attempt.fence == fence,
            mutation != .countsReleasesAsCrashes
        else { return }
        let left = mutation == .givingUpResetsCrashes ? 0 : deaths ?? attempt.deaths
        items[item].attempt = left == 0 ? nil : Attempt(deaths: left, fence: fence, isOpen: false)
    }

    func isAvailable(_ item: Int, _ seen: KnownVersion) -> Bool {
        guard let product = items[item].product else { return false }
        switch seen {
        case .nothing: return true
        case .version(let fence): return product > fence
        case .anything: return false
        }
    }

    private mutating func addWaiter(_ item: Int, _ owner: Owner) {
        if let index = items[item].waiters.firstIndex(where: { $0.owner == owner }) {
            items[item].waiters[index].lastRequest = now
        } else {
            items[item].waiters.append(Waiter(owner: owner, lastRequest: now))
        }
    }

    mutating func renew(_ item: Int, _ owner: Owner, fence: Int, level: Int = 1, duration: Int = 0) -> Bool {
        if let holder = items[item].holder {
            guard holder.owner == owner else { return false }
            items[item].holder!.until = now + duration
            return true
        }
        if max(last, floor, items[item].floor) > fence, mutation != .renewsOutdatedLeases { return false }
        last = max(last, fence)
        items[item].holder = LeaseOwner(owner: owner, fence: fence, level: level, until: now + duration)
        return true
    }

    /// - Parameter deaths: the number of crashes to record; nil to derive it from the outcome.
    mutating func release(
        _ item: Int, _ owner: Owner, fence: Int, _ outcome: Outcome, deaths: Int? = nil
    ) -> [Message]? {
        let holder = items[item].holder
        if let holder, holder.owner != owner, mutation != .releasesForeignLeases { return nil }
        items[item].holder = nil
        let ended = holder?.fence ?? fence
        endAttempt(item, ended, deaths ?? (outcome == .givenUp ? nil : 0))
        close(ended)
        var messages: [Message] = []
        for waiter in items[item].waiters where !messages.contains(where: { $0.process == waiter.owner.process }) {
            messages.append(
                Message(process: waiter.owner.process, item: item, text: .ended(fence: ended, outcome)))
        }
        items[item].waiters = []
        return messages
    }

    /// - Returns: whether there are waiters.
    mutating func abandon(_ owner: Owner, _ leases: [(item: Int, fence: Int)]) -> Bool {
        for (item, _) in leases {
            items[item].waiters.removeAll { $0.lastRequest <= now - Self.waiterTimeout }
            if mutation == .abandonsWithoutCheckingWaiters { continue }
            if !items[item].waiters.isEmpty { return true }
            if mutation == .abandonsOneByOne { end(item, owner, fence: items[item].holder?.fence ?? 0) }
        }
        for (item, fence) in leases { end(item, owner, fence: fence) }
        return false
    }

    private mutating func end(_ item: Int, _ owner: Owner, fence: Int) {
        if items[item].holder?.owner == owner { items[item].holder = nil }
        endAttempt(item, fence, nil)
        close(fence)
    }

    private mutating func close(_ fence: Int) {
        if last <= fence, mutation != .doesNotCloseFences { last = fence + 1 }
    }

    mutating func leave(_ item: Int, _ owner: Owner) {
        let byProcess = mutation == .tracksWaitersByProcess
        items[item].waiters.removeAll { byProcess ? $0.owner.process == owner.process : $0.owner == owner }
    }

    /// - Returns: true if the product was stored, false if it was fenced out.
    mutating func store(_ item: Int, fence: Int) -> Bool {
        let above = mutation == .ignoresFloors ? 0 : max(floor, items[item].floor)
        let isOld = max(items[item].product ?? 0, above) > fence
        if isOld, mutation != .storesWithoutFencing { return false }
        items[item].product = fence
        return true
    }

    /// - Parameter item: the item to purge; nil for all items of the source.
    mutating func purge(_ item: Int?) {
        last = max(mutation == .purgeKeepsLastFence ? last : last + 1, micros)
        if let item { items[item].floor = last } else { floor = last }
        for item in item.map({ $0...$0 }) ?? 0...items.count - 1 { items[item].product = nil }
    }

    // MARK: Time and data loss

    /// Lets the lease of an item expire.
    mutating func expire(_ item: Int) { items[item].holder = nil }

    /// Advances the clock and removes expired leases.
    mutating func advance(_ milliseconds: Int) {
        now += milliseconds
        for item in items.indices {
            if let holder = items[item].holder, holder.until <= now { expire(item) }
        }
    }

    /// Lets the fences expire, as they do ten minutes after the last lease.
    mutating func forgetFences() {
        (last, floor) = (0, 0)
        for item in items.indices { (items[item].floor, items[item].attempt) = (0, nil) }
    }

    /// Loses all data except the clock, like `FLUSHALL`.
    mutating func flush() {
        forgetFences()
        items = Array(repeating: Item(), count: items.count)
    }
}
