import Testing

/// What the explorer looks at: processes that run the protocol on a ``LeaseTable``, what is on its way between them, and what must be
/// remembered to know whether an invariant is broken.
///
/// Each process does its jobs one after the other, each by an attempt of its own, as `LeaseSession` and those who use it do.
struct ModelWorld: Hashable {
    struct Job: Hashable {
        var items: [Int]
        /// Whether it is to be made anew, whatever is there.
        var isReload = false
    }

    /// Work under a lease, or without one (fence 0).
    struct Work: Hashable {
        var fence: Int
        /// The how manyeth work on its item it is.
        var number: Int
    }

    /// How far an attempt is with one of the items of its job.
    enum Wish: Hashable {
        case unasked
        case waiting(fence: Int)
        case working(Work)
        /// What was made is stored, or is of no use; the lease is to be given back.
        case ending(Work, LeaseTable.Outcome, again: Bool)
        case done

        var work: Work? {
            switch self {
            case .working(let work), .ending(let work, _, _): work
            default: nil
            }
        }

        var isWaiting: Bool { if case .waiting = self { true } else { false } }
    }

    struct Process: Hashable {
        /// How many jobs were begun.
        var begun = 0
        /// The number of the present attempt, or of the last one.
        var attempt = 0
        /// What the attempt had a lease of and gave back.
        var returned: [Int] = []
        /// The job under way.
        var job: Job?
        /// Of each of its items.
        var wishes: [Wish] = []
        /// What it knows of each.
        var seen: [LeaseTable.KnownVersion] = []
        /// What was published to it and not taken notice of yet.
        var heard: [LeaseTable.Message] = []
        /// Nobody in this process waits any more: it works for others.
        var isForOthers = false
        var isDead = false

        var isAtWork: Bool { wishes.contains { $0.work != nil } }

        func wish(for item: Int) -> Wish? { job?.items.firstIndex(of: item).map { wishes[$0] } }
    }

    /// What was sent to Redis and is not there yet. It may be overtaken by whatever the process sends later.
    enum ModelMessage: Hashable {
        case leave(item: Int, LeaseTable.Owner)
        case release(item: Int, LeaseTable.Owner, fence: Int)
        case renew(item: Int, LeaseTable.Owner, fence: Int)
    }

    /// What is remembered of an item for the invariants' sake.
    struct History: Hashable {
        var works = 0
        /// How many works there may be: one, and one more for each fault that can cause one.
        var allowed: Int
        /// Which work the product that is there came of.
        var stored = 0
        /// The last work that was begun before the last purge.
        var purged = 0
        /// The lease that was given last, by its fence, until its owner ends it.
        var open: Int?
        /// Leases before it that their owners never ended, since the last purge and the last end with something to show for it.
        var deaths = 0
    }

    var table: LeaseTable
    var processes: [Process]
    /// The fence of what was there at the beginning and is of no use any more; 0 where nothing was.
    var stale: Int
    var letters: [ModelMessage] = []
    var histories: [History]
    var faults = 0
    /// Renewals that may still be late.
    var lateRenewals: Int
    /// Whether Redis has lost what it knew: waiters, floors, the last fence.
    var isForgetful = false
    /// Whether a message was lost.
    var isDeaf = false

    /// Whether every job of those who live has ended.
    func isDone(_ scenario: Scenario) -> Bool {
        processes.indices.allSatisfy {
            processes[$0].isDead || processes[$0].job == nil && processes[$0].begun == scenario.jobs[$0].count
        }
    }

    func owner(_ process: Int) -> LeaseTable.Owner {
        LeaseTable.Owner(process: process, attempt: processes[process].attempt)
    }
}

/// Who does what, and what may go wrong.
struct Scenario: Sendable, CustomTestStringConvertible {
    enum Fault: Hashable, Sendable, CaseIterable {
        /// A process dies.
        case crash
        /// A lease runs out although its owner lives: it was stopped for a while, or Redis did not hear it.
        case lapse
        /// A message to a process does not arrive.
        case lostMessage
        case flush
        /// Of one item.
        case purge
        /// Of all items.
        case purgeOfAll
        /// Everybody in a process who waits for its job goes away.
        case leave
        /// The work fails for a reason that holds for everybody.
        case failure
        /// Redis is away for one who asks.
        case without
        /// The server's clock is set back, to before all fences.
        case clockBack
        /// The fences are forgotten: ten minutes without a lease have passed.
        case forgottenFences
    }

    let name: String
    /// Of each process.
    let jobs: [[ModelWorld.Job]]
    let faults: Set<Fault>
    /// How many faults there may be.
    let limit: Int
    /// How many renewals may be late.
    let lateRenewals: Int
    /// The fence of what is there at the beginning and of no use any more; 0 where nothing is.
    let stale: Int
    var mutation: Mutation?

    init(
        _ name: String, _ jobs: [[ModelWorld.Job]], _ faults: Set<Fault>, limit: Int = 2, lateRenewals: Int = 0,
        stale: Int = 0, mutation: Mutation? = nil
    ) {
        self.name = name
        self.jobs = jobs
        self.faults = faults
        self.limit = limit
        self.lateRenewals = lateRenewals
        self.stale = stale
        self.mutation = mutation
    }

    var testDescription: String { name }

    private var items: Int { (jobs.joined().flatMap(\.items).max() ?? 0) + 1 }

    var start: ModelWorld {
        var table = LeaseTable(items: items, mutation: mutation)
        (table.last, table.tick) = (stale, stale + 2)
        if stale > 0 { for item in 0..<items { table.items[item].product = stale } }
        return ModelWorld(
            table: table, processes: jobs.map { _ in ModelWorld.Process() }, stale: stale,
            histories: (0..<items).map { item in
                let wishes = jobs.joined().filter { $0.items.contains(item) }
                let reloads = wishes.count { $0.isReload }
                return ModelWorld.History(allowed: reloads + (reloads < wishes.count ? 1 : 0))
            },
            lateRenewals: lateRenewals)
    }
}
