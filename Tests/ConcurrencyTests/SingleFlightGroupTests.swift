import Concurrency
import TestSupport
import Testing

@Suite struct SingleFlightGroupTests {
    private let singleFlight = SingleFlightGroup<String, Int>()
    private let gate = AsyncEvent()

    /// Work that waits at the gate, and then makes its keys; the value says how many works there were.
    private let works = Lock(0)
    private let ended = Lock<[String]>([])

    @Sendable private func work(_ flight: SingleFlightGroup<String, Int>.Operation, _ keys: [String]) async throws {
        let number = works.withLock {
            $0 += 1
            return $0
        }
        do {
            try await gate.pass()
            for key in keys { flight.complete(key, with: number) }
        } catch {
            ended.withLock { $0.append("\(error)") }
            throw error
        }
    }

    private func board(_ keys: String...) -> Task<[String: Int], any Error> {
        Task { try await singleFlight.run(keys, work).mapValues(\.value) }
    }

    private func waiting(_ count: Int, for key: String) async throws {
        try await until("all are aboard") { singleFlight.waiting(for: key) == count }
    }

    @Test func manyWaitForOneWork() async throws {
        let first = board("a")
        try await waiting(1, for: "a")
        let others = (0..<50).map { _ in board("a") }
        try await waiting(51, for: "a")
        gate.signal()
        #expect(try await first.value == ["a": 1])
        for other in others { #expect(try await other.value == ["a": 1]) }
        #expect(works.withLock { $0 } == 1)
        #expect(singleFlight.operationCount == 0)
        // Nothing is kept.
        #expect(try await board("a").value == ["a": 2])
    }

    @Test func onlyWhoStartedTheWorkOwnsIt() async throws {
        let first = Task { try await singleFlight.run(["a"], work)["a"]?.isOwn }
        try await waiting(1, for: "a")
        let second = Task { try await singleFlight.run(["a"], work)["a"]?.isOwn }
        try await waiting(2, for: "a")
        gate.signal()
        #expect(try await first.value == true)
        #expect(try await second.value == false)
    }

    @Test func severalKeysAreMadeTogetherExceptThoseUnderWay() async throws {
        let first = board("a", "b")
        try await waiting(1, for: "b")
        let second = board("b", "c", "d")
        try await waiting(1, for: "d")
        #expect(works.withLock { $0 } <= 2)
        gate.signal()
        #expect(try await first.value == ["a": 1, "b": 1])
        #expect(try await second.value == ["b": 1, "c": 2, "d": 2])
    }

    @Test func leavingLeavesTheOthersAlone() async throws {
        let tasks = (0..<3).map { _ in board("a") }
        try await waiting(3, for: "a")
        tasks[0].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[0].value }
        #expect(singleFlight.waiting(for: "a") == 2)
        gate.signal()
        #expect(try await tasks[1].value == ["a": 1])
        #expect(try await tasks[2].value == ["a": 1])
        #expect(ended.withLock { $0 } == [])
    }

    @Test func workThatNobodyWaitsForIsCancelledAndALateJoinerStartsAfresh() async throws {
        let tasks = (0..<3).map { _ in board("a") }
        try await waiting(3, for: "a")
        for task in tasks { task.cancel() }
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        let late = board("a")
        gate.signal()
        #expect(try await late.value == ["a": 2])
        try await until("the abandoned work was cancelled") { !ended.withLock({ $0.isEmpty }) }
    }

    @Test func oneWhoHasLeftBeforeComingAboardStartsNothing() async throws {
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await singleFlight.run(["a"], work)
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(works.withLock { $0 } == 0)
        #expect(singleFlight.operationCount == 0)
    }

    @Test func partOfTheWorkThatNobodyWaitsForIsCancelledWhenTheRestHasLanded() async throws {
        let parts = SingleFlightGroup<String, Int>()
        let (isWaiting, isCancelled) = (Lock(false), Lock(false))
        let both = Task {
            try await parts.run(["a", "b"]) { flight, _ in
                try await gate.pass()
                flight.complete("a", with: 1)
                isWaiting.withLock { $0 = true }
                do { try await Task.sleep(for: .seconds(600)) } catch {
                    isCancelled.withLock { $0 = true }
                    throw error
                }
            }
        }
        try await until("both wait") { parts.waiting(for: "b") != 0 }
        let one = Task { try await parts.run(["a"]) { _, _ in } }
        try await until("one more waits") { parts.waiting(for: "a") == 2 }
        both.cancel()
        await #expect(throws: CancellationError.self) { try await both.value }
        #expect(parts.operationCount == 1)
        gate.signal()
        #expect(try await one.value["a"]?.value == 1)
        try await until("the rest was cancelled") { isCancelled.withLock({ $0 }) }
        #expect(parts.operationCount == 0)
    }

    @Test func aFailureIsEverybodysWhoWaitsAndNobodysWhoComesLater() async throws {
        struct Broken: Error {}
        let tasks = (0..<3).map { _ in
            Task {
                try await singleFlight.run(["a"]) { _, _ in
                    try await gate.pass()
                    throw Broken()
                }
            }
        }
        try await waiting(3, for: "a")
        gate.signal()
        for task in tasks { await #expect(throws: Broken.self) { try await task.value } }
        #expect(try await board("a").value == ["a": 1])
    }

    @Test func everyoneIsToldOnceThatTheWorkHasBegun() async throws {
        let begun = Lock([0, 0, 0])
        let mayBegin = AsyncEvent()
        func join(_ permit: Int) -> Task<Void, any Error> {
            Task {
                _ = try await singleFlight.run(
                    ["a"],
                    onStart: { _ in
                        begun.withLock { $0[permit] += 1 }; return true
                    }
                ) { flight, _ in
                    try await mayBegin.pass()
                    flight.markStarted()
                    flight.markStarted()
                    try await gate.pass()
                    flight.complete("a", with: 1)
                }
            }
        }
        let early = [join(0), join(1)]
        try await waiting(2, for: "a")
        #expect(begun.withLock { $0 } == [0, 0, 0])
        mayBegin.signal()
        try await until("the early ones are told") { begun.withLock({ $0 }) == [1, 1, 0] }
        let late = join(2)
        try await until("the late one is told") { begun.withLock({ $0 }) == [1, 1, 1] }
        gate.signal()
        for task in early + [late] { try await task.value }
        #expect(begun.withLock { $0 } == [1, 1, 1])
    }

    @Test(arguments: [[false, false], [false, true]])
    func workThatNobodyStaysForDoesNotBegin(stays: [Bool]) async throws {
        let mayBegin = AsyncEvent()
        let hasBegun = Lock(false)
        let tasks = stays.map { stays in
            Task {
                try await singleFlight.run(["a"], onStart: { _ in stays }) { flight, _ in
                    try await mayBegin.pass()
                    guard flight.markStarted() else { throw CancellationError() }
                    hasBegun.withLock { $0 = true }
                    flight.complete("a", with: 1)
                }
            }
        }
        try await waiting(2, for: "a")
        mayBegin.signal()
        for task in tasks { _ = await task.result }
        #expect(hasBegun.withLock { $0 } == stays.contains(true))
    }

    @Test func aMoreUrgentPassengerRaisesTheWork() async throws {
        let levels = Lock<[Int]>([])
        let urgency = Lock<WorkPriority?>(nil)
        func join(_ level: Int) -> Task<Void, any Error> {
            Task {
                _ = try await singleFlight.run(["a"], urgency: WorkPriority(level: level)) { flight, _ in
                    urgency.withLock { $0 = flight.urgency }
                    try await gate.pass()
                    flight.complete("a", with: 1)
                }
            }
        }
        let low = join(2)
        try await until("work is under way") { urgency.withLock({ $0 }) != nil }
        _ = urgency.withLock { $0 }!.listen { level in levels.withLock { $0.append(level) } }
        let others = [join(2), join(0)]
        try await waiting(3, for: "a")
        try await until("it is urgent") { urgency.withLock({ $0 })!.level == 0 }
        #expect(levels.withLock { $0 } == [0])
        gate.signal()
        for task in [low] + others { try await task.value }
    }

    @Test func workThatIsWantedElsewhereGoesOnUntilItIsNot() async throws {
        let isWanted = Lock(true)
        let asked = Lock(0)
        let (isUnderWay, isCancelled) = (Lock(false), Lock(false))
        let task = Task {
            try await singleFlight.run(["a"]) { flight, _ in
                flight.keepAlive {
                    asked.withLock { $0 += 1 }
                    return isWanted.withLock { $0 }
                }
                isUnderWay.withLock { $0 = true }
                do { try await gate.pass() } catch {
                    isCancelled.withLock { $0 = true }
                    throw error
                }
            }
        }
        // Whoever leaves earlier leaves work that nobody said of that it is wanted elsewhere.
        try await until("work is under way") { isUnderWay.withLock { $0 } }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        try await until("it was asked twice whether it is wanted") { asked.withLock({ $0 }) >= 2 }
        #expect(!isCancelled.withLock { $0 })
        #expect(singleFlight.operationCount == 1)
        // Who comes now starts afresh, and ends by itself.
        let late = Task { try await singleFlight.run(["a"]) { flight, _ in flight.complete("a", with: 7) } }
        #expect(try await late.value["a"]?.value == 7)
        #expect(singleFlight.operationCount == 1)
        isWanted.withLock { $0 = false }
        try await until("it was cancelled") { isCancelled.withLock({ $0 }) }
        #expect(singleFlight.operationCount == 0)
    }
}

extension AsyncEvent {
    /// Waits until the event is signaled. Throws if the task is cancelled before.
    fileprivate func pass() async throws {
        await wait()
        if !isSignaled { throw CancellationError() }
    }
}
