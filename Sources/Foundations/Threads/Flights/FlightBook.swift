/// Who waits for what: the state of ``Flights``. A pure value: what follows from a change is told as ``Effects``, and done outside.
struct FlightBook<Key: Hashable & Sendable, Value: Sendable> {
    typealias Arrivals = [Key: Flights<Key, Value>.Arrival]

    /// Somebody who waits.
    struct Passenger {
        let continuation: CheckedContinuation<Arrivals, any Error>
        let onBegin: @Sendable (_ isOwn: Bool) -> Bool
        /// What has not come yet.
        var open: Set<Key> = []
        /// The work that it started itself.
        var own: UInt64?
        /// All work that it waits for.
        var aboard: Set<UInt64> = []
        var arrived: Arrivals = [:]
        var hasBegun = false
    }

    /// Work under way.
    struct UnderWay {
        let flight: Flight<Key, Value>
        /// What has not landed.
        var open: Set<Key>
        var passengers: Set<UInt64>
        var hasBegun = false
        var elsewhere: (@Sendable () async -> Bool)?
        var task: Task<Void, Never>?
    }

    /// What is to be done about a change.
    struct Effects {
        var resumed: [(CheckedContinuation<Arrivals, any Error>, Result<Arrivals, any Error>)] = []
        var begun: [(call: @Sendable (_ isOwn: Bool) -> Bool, isOwn: Bool)] = []
        /// Nobody here waits for these any more.
        var emptied: [Flight<Key, Value>] = []
        /// Of the work that somebody waits for now.
        var aboard: [Urgency] = []
        /// Work to be started, and on which keys.
        var started: (Flight<Key, Value>, [Key])?
    }

    private var flights: [UInt64: UnderWay] = [:]
    private var seats: [Key: UInt64] = [:]
    private var passengers: [UInt64: Passenger] = [:]
    /// Who has left before coming aboard.
    private var left: Set<UInt64> = []
    private var numbers: UInt64 = 0

    var count: Int { flights.count }

    func waiting(for key: Key) -> Int {
        seats[key].flatMap { flights[$0] }?.passengers.count { passengers[$0]?.open.contains(key) == true } ?? 0
    }

    mutating func nextNumber() -> UInt64 {
        numbers += 1
        return numbers
    }

    // MARK: Passengers

    mutating func board(
        _ passenger: Passenger, _ number: UInt64, _ keys: [Key], _ make: (UInt64) -> Flight<Key, Value>
    ) -> Effects {
        var (passenger, effects) = (passenger, Effects())
        if left.remove(number) != nil {
            effects.resumed = [(passenger.continuation, .failure(CancellationError()))]
            return effects
        }
        passenger.open = Set(keys)
        let unserved = passenger.open.filter { key in
            guard let flight = seats[key] else { return true }
            passenger.aboard.insert(flight)
            return false
        }
        passenger.hasBegun = passenger.aboard.contains { flights[$0]?.hasBegun == true }
        if passenger.hasBegun { effects.begun = [(passenger.onBegin, false)] }
        if !unserved.isEmpty {
            let flight = make(nextNumber())
            flights[flight.number] = UnderWay(flight: flight, open: unserved, passengers: [])
            for key in unserved { seats[key] = flight.number }
            passenger.own = flight.number
            passenger.aboard.insert(flight.number)
            effects.started = (flight, keys.filter(unserved.contains))
        }
        for flight in passenger.aboard { flights[flight]?.passengers.insert(number) }
        effects.aboard = passenger.aboard.compactMap { flights[$0]?.flight.urgency }
        passengers[number] = passenger
        return effects
    }

    mutating func leave(_ number: UInt64) -> Effects {
        guard let passenger = passengers[number] else {
            left.insert(number)
            return Effects()
        }
        return remove(number, with: .failure(CancellationError()), passenger)
    }

    /// The number is not used any more.
    mutating func forget(_ number: UInt64) { left.remove(number) }

    private mutating func remove(
        _ number: UInt64, with result: Result<Arrivals, any Error>, _ passenger: Passenger
    ) -> Effects {
        passengers[number] = nil
        var effects = Effects()
        effects.resumed = [(passenger.continuation, result)]
        for flight in passenger.aboard { effects.emptied += unseat(number, from: flight) }
        return effects
    }

    private mutating func unseat(_ passenger: UInt64, from number: UInt64) -> [Flight<Key, Value>] {
        guard flights[number]?.passengers.remove(passenger) != nil, isEmpty(number) else { return [] }
        return [flights[number]!.flight]
    }

    // MARK: Flights

    /// - Returns: whether everybody has left already.
    mutating func setTask(_ task: Task<Void, Never>, _ number: UInt64) -> Bool {
        flights[number]?.task = task
        return flights[number] == nil
    }

    /// What there is to know before work begins.
    enum Departure {
        /// It has begun.
        case past
        /// Nobody here waits for it: there is nothing to begin, and whoever waits elsewhere takes it over.
        case unwanted
        /// These are to be asked whether they stay; none of them who were asked by other work before.
        case ask([(call: @Sendable (_ isOwn: Bool) -> Bool, isOwn: Bool)])
    }

    mutating func begin(_ number: UInt64) -> Departure {
        guard let flight = flights[number] else { return .unwanted }
        if flight.hasBegun { return .past }
        if flight.passengers.isEmpty { return .unwanted }
        flights[number]!.hasBegun = true
        var asked: [(call: @Sendable (_ isOwn: Bool) -> Bool, isOwn: Bool)] = []
        for id in flight.passengers where passengers[id]?.hasBegun == false {
            passengers[id]!.hasBegun = true
            asked.append((passengers[id]!.onBegin, passengers[id]!.own == number))
        }
        return .ask(asked)
    }

    mutating func land(_ key: Key, _ value: Value, _ number: UInt64) -> Effects {
        var effects = Effects()
        guard flights[number]?.open.remove(key) != nil else { return effects }
        vacate([key], of: number)
        for id in flights[number]!.passengers where passengers[id]?.open.remove(key) != nil {
            passengers[id]!.arrived[key] = .init(value: value, isOwn: passengers[id]!.own == number)
            let passenger = passengers[id]!
            if passenger.open.isEmpty {
                effects.add(remove(id, with: .success(passenger.arrived), passenger))
            } else if passenger.open.isDisjoint(with: flights[number]!.open) {
                passengers[id]!.aboard.remove(number)
                effects.emptied += unseat(id, from: number)
            }
        }
        return effects
    }

    /// The work is over. Who waits for what has not landed gets the error.
    mutating func end(_ number: UInt64, _ error: any Error) -> Effects {
        var effects = Effects()
        guard let flight = flights.removeValue(forKey: number) else { return effects }
        vacate(flight.open, of: number)
        for id in flight.passengers {
            guard let passenger = passengers[id] else { continue }
            effects.add(remove(id, with: .failure(error), passenger))
        }
        return effects
    }

    // MARK: Work that nobody waits for

    private func isEmpty(_ number: UInt64) -> Bool {
        guard let flight = flights[number] else { return false }
        return flight.passengers.isEmpty && !flight.open.isEmpty
    }

    mutating func setElsewhere(_ ask: (@Sendable () async -> Bool)?, _ number: UInt64) -> Effects {
        var effects = Effects()
        flights[number]?.elsewhere = ask
        if ask == nil, isEmpty(number) { effects.emptied = [flights[number]!.flight] }
        return effects
    }

    /// What to do about work that nobody here waits for.
    enum Abandonment {
        /// It is over.
        case none
        /// Ask whether it is wanted elsewhere.
        case ask(@Sendable () async -> Bool)
        /// End it.
        case cancel(Task<Void, Never>?)
    }

    mutating func abandon(_ number: UInt64) -> Abandonment {
        guard isEmpty(number), let flight = flights[number] else { return .none }
        // Who comes now starts afresh: this work may be at its end before that is known here.
        vacate(flight.open, of: number)
        if let ask = flight.elsewhere { return .ask(ask) }
        return .cancel(drop(number))
    }

    /// It was asked whether the work is wanted elsewhere.
    /// - Returns: whether to ask again after a while.
    mutating func lingered(_ number: UInt64, isWanted: Bool) -> (again: Bool, cancelled: Task<Void, Never>?) {
        guard isEmpty(number) else { return (false, nil) }
        return isWanted ? (true, nil) : (false, drop(number))
    }

    private mutating func drop(_ number: UInt64) -> Task<Void, Never>? {
        guard let flight = flights.removeValue(forKey: number) else { return nil }
        vacate(flight.open, of: number)
        return flight.task
    }

    /// Nobody who waits stays.
    mutating func vacate(_ number: UInt64) {
        if let flight = flights[number] { vacate(flight.open, of: number) }
    }

    /// Who wants these keys from now on does not come aboard this work.
    private mutating func vacate(_ keys: Set<Key>, of number: UInt64) {
        for key in keys where seats[key] == number { seats[key] = nil }
    }
}

extension FlightBook.Effects {
    mutating func add(_ other: Self) {
        resumed += other.resumed
        begun += other.begun
        emptied += other.emptied
    }
}
