import Testing

/// A state of the explored model: processes that run the protocol on a ``LeaseTable``, messages in flight, and the
/// history that the invariants need.
///
/// Each process runs its jobs one after the other, each as an attempt of its own, like `LeaseSession` and its callers.
struct ModelWorld: Hashable {
    struct Job: Hashable {
        var items: [Int]
        /// Whether the products are produced again even if they are stored.
        var isReload = false
    }

    /// Work under a lease, or without one (fence 0).
    struct Work: Hashable {
        var fence: Int
        /// The ordinal number of the work among that on its item.
        var number: Int
    }

    /// The state of one item of a job.
    enum ItemState: Hashable {
        case notRequested
        case waiting(fence: Int)
        case working(Work)
        /// The product is stored or rejected, and the lease is about to be released.
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
        /// The number of jobs that were started.
        var startedJobs = 0
        /// The number of the current or last attempt.
        var attempt = 0
        /// The items whose leases the attempt held and released.
        var released: [Int] = []
        /// The job in progress.
        var job: Job?
        /// The state of each item of the job.
        var itemStates: [ItemState] = []
        /// The known version of each item.
        var seen: [LeaseTable.KnownVersion] = []
        /// The notifications that it has not handled yet.
        var notifications: [LeaseTable.Message] = []
        /// Whether all waiters in this process have left, so that it works for others only.
        var hasNoLocalWaiters = false
        var hasCrashed = false

        var isWorking: Bool { itemStates.contains { $0.work != nil } }

        func state(for item: Int) -> ItemState? { job?.items.firstIndex(of: item).map { itemStates[$0] } }
    }

    /// A message to Redis that has not arrived yet. Later messages of the process may overtake it.
    enum ModelMessage: Hashable {
        case leave(item: Int, LeaseTable.Owner)
        case release(item: Int, LeaseTable.Owner, fence: Int)
        case renew(item: Int, LeaseTable.Owner, fence: Int)
    }

    /// The history of an item, for the invariants.
    struct History: Hashable {
        var executions = 0
        /// The maximum number of executions: one, and one more for each fault that can cause one.
        var allowedExecutions: Int
        /// The work that produced the stored product.
        var stored = 0
        /// The last work that started before the last purge.
        var purged = 0
        /// The fence of the last granted lease, until its owner ends it.
        var openLease: Int?
        /// The number of earlier leases that never ended, since the last purge and the last end with a result.
        var deaths = 0
    }

    var table: LeaseTable
    var processes: [Process]
    /// The fence of the stale products at the start; 0 for none.
    var stale: Int
    var messagesInFlight: [ModelMessage] = []
    var histories: [History]
    var faults = 0
    /// The number of renewals that may still be late.
    var lateRenewals: Int
    /// Whether Redis has lost its data: waiters, floors, the last fence.
    var hasLostData = false
    /// Whether a message was lost.
    var hasLostMessage = false

    /// Whether every job of live processes has ended.
    func isDone(_ scenario: Scenario) -> Bool {
        processes.indices.allSatisfy {
            processes[$0].hasCrashed || processes[$0].job == nil && processes[$0].startedJobs == scenario.jobs[$0].count
        }
    }

    func owner(_ process: Int) -> LeaseTable.Owner {
        LeaseTable.Owner(process: process, attempt: processes[process].attempt)
    }
}

/// The jobs of processes and the faults to explore.
struct Scenario: Sendable, CustomTestStringConvertible {
    enum Fault: Hashable, Sendable, CaseIterable {
        /// A process crashes.
        case crash
        /// The lease of a live owner expires, because the owner was paused or its renewals were lost.
        case expiry
        /// A message to a process is lost.
        case lostMessage
        case flush
        /// One item is purged.
        case purge
        /// All items are purged.
        case purgeAll
        /// All waiters of a job in a process leave.
        case leave
        /// The work fails for a reason that is the same for all attempts.
        case failure
        /// Redis is unavailable during a request.
        case redisOutage
        /// The server's clock is set back to before all fences.
        case clockSetBack
        /// The fences expire after ten minutes without a lease.
        case expiredFences
    }

    let name: String
    /// The jobs of each process.
    let jobs: [[ModelWorld.Job]]
    let faults: Set<Fault>
    /// The maximum number of faults.
    let limit: Int
    /// The maximum number of late renewals.
    let lateRenewals: Int
    /// The fence of stale products at the start; 0 for none.
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
                let requests = jobs.joined().filter { $0.items.contains(item) }
                let reloads = requests.count { $0.isReload }
                return ModelWorld.History(allowedExecutions: reloads + (reloads < requests.count ? 1 : 0))
            },
            lateRenewals: lateRenewals)
    }
}
