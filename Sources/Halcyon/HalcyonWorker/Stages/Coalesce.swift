import HalcyonCluster
import HalcyonLeases
import HalcyonModel
import Redis
import Telemetry
import Threads

/// Has each result made once at a time, in this process and, by leases, in the whole cluster; whoever wants it waits for that.
///
/// Who waits holds nothing that others need: no place of a fetch or of the renderer, and no connection.
final class Coalesce: Sendable {
    let leases: Leases
    let make: Make
    let store: Store
    /// How much may be made at once without leases.
    let withoutLeases: Slots
    private let flights = Flights<Wish, Making>()

    /// How often what was made may turn out to be older than what is there until it is delivered to its jobs alone.
    static let mostRounds = 3

    init(leases: Leases, make: Make, store: Store, withoutLeases: Slots) {
        self.leases = leases
        self.make = make
        self.store = store
        self.withoutLeases = withoutLeases
    }

    /// Gets results made that are not there yet, or waits until they are.
    /// - Parameters:
    ///   - places: where in the job the variants stand.
    ///   - anew: whether what is in the result tier is of no use.
    /// - Throws: `CancellationError` when the task is cancelled; the work goes on while others wait for it.
    func obtain(
        _ places: [Int], of work: Work, anew: Bool, onBegin: @escaping @Sendable (_ isOwn: Bool) -> Bool
    ) async throws -> [ResultKey: Flights<Wish, Making>.Arrival] {
        let wishes = places.map { Wish(work.keys[$0], of: work) }
        let arrivals = try await flights.board(
            wishes, urgency: Urgency(level: work.lane.level), onBegin: onBegin
        ) { [self] flight, wishes in
            let open = wishes.map { wish in
                SharedMaking.Open(wish: wish, place: work.keys.firstIndex(of: wish.key)!, anew: anew)
            }
            try await SharedMaking(stage: self, work: work, flight: flight).run(open)
        }
        leases.joined(.result, arrivals.values.count { !$0.isOwn })
        return Dictionary(uniqueKeysWithValues: arrivals.map { ($0.key.key, $0.value) })
    }
}
