import Concurrency
import TestSupport
import Testing

@Suite struct SingleFlightGroupTests {
    private let singleFlight = SingleFlightGroup<String, Int>()
    private let gate = AsyncEvent()

    /// The number of operations that have started.
    private let started = Lock(0)
    /// The errors of failed operations.
    private let errors = Lock<[String]>([])

    /// Waits for the gate and then completes the keys with the number of the operation.
    @Sendable private func perform(_ flight: SingleFlightGroup<String, Int>.Operation, _ keys: [String]) async throws {
        let number = started.withLock {
            $0 += 1
            return $0
        }
        do {
            try await gate.pass()
            for key in keys { flight.complete(key, with: number) }
        } catch {
            errors.withLock { $0.append("\(error)") }
            throw error
        }
    }

    private func request(_ keys: String...) -> Task<[String: Int], any Error> {
        Task { try await singleFlight.run(keys, perform).mapValues(\.value) }
    }

    private func waitForCallers(_ count: Int, for key: String) async throws {
        try await until("all callers wait") { singleFlight.waiting(for: key) == count }
    }

    @Test func concurrentCallersShareOneOperation() async throws {
        let first = request("a")
        try await waitForCallers(1, for: "a")
        let others = (0..<50).map { _ in request("a") }
        try await waitForCallers(51, for: "a")
        gate.signal()
        #expect(try await first.value == ["a": 1])
        for other in others { #expect(try await other.value == ["a": 1]) }
        #expect(started.withLock { $0 } == 1)
        try await until("no operation is left") { singleFlight.operationCount == 0 }
        // Results are not kept.
        #expect(try await request("a").value == ["a": 2])
    }

    @Test func onlyTheStartingCallerOwnsTheResult() async throws {
        let first = Task { try await singleFlight.run(["a"], perform)["a"]?.isOwn }
        try await waitForCallers(1, for: "a")
        let second = Task { try await singleFlight.run(["a"], perform)["a"]?.isOwn }
        try await waitForCallers(2, for: "a")
        gate.signal()
        #expect(try await first.value == true)
        #expect(try await second.value == false)
    }

    @Test func oneOperationCoversAllKeysNotInFlight() async throws {
        let first = request("a", "b")
        try await waitForCallers(1, for: "b")
        let second = request("b", "c", "d")
        try await waitForCallers(1, for: "d")
        #expect(started.withLock { $0 } <= 2)
        gate.signal()
        #expect(try await first.value == ["a": 1, "b": 1])
        #expect(try await second.value == ["b": 1, "c": 2, "d": 2])
    }

    @Test func cancelledCallerDoesNotAffectOthers() async throws {
        let tasks = (0..<3).map { _ in request("a") }
        try await waitForCallers(3, for: "a")
        tasks[0].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[0].value }
        #expect(singleFlight.waiting(for: "a") == 2)
        gate.signal()
        #expect(try await tasks[1].value == ["a": 1])
        #expect(try await tasks[2].value == ["a": 1])
        #expect(errors.withLock { $0 } == [])
    }

    @Test func abandonedOperationIsCancelledAndNotJoined() async throws {
        let tasks = (0..<3).map { _ in request("a") }
        try await waitForCallers(3, for: "a")
        for task in tasks { task.cancel() }
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        let late = request("a")
        gate.signal()
        #expect(try await late.value == ["a": 2])
        try await until("the abandoned operation was cancelled") { !errors.withLock({ $0.isEmpty }) }
    }

    @Test func cancelledTaskStartsNoOperation() async throws {
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await singleFlight.run(["a"], perform)
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(started.withLock { $0 } == 0)
        try await until("no operation is left") { singleFlight.operationCount == 0 }
    }

    @Test func operationIsCancelledWhenItsRestIsAbandoned() async throws {
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
        try await until("the first caller waits") { parts.waiting(for: "b") != 0 }
        let one = Task { try await parts.run(["a"]) { _, _ in } }
        try await until("the second caller waits") { parts.waiting(for: "a") == 2 }
        both.cancel()
        await #expect(throws: CancellationError.self) { try await both.value }
        #expect(parts.operationCount == 1)
        gate.signal()
        #expect(try await one.value["a"]?.value == 1)
        try await until("the operation was cancelled") { isCancelled.withLock({ $0 }) }
        try await until("no operation is left") { parts.operationCount == 0 }
    }

    @Test func failureReachesAllCallersAndIsNotKept() async throws {
        struct Broken: Error {}
        let tasks = (0..<3).map { _ in
            Task {
                try await singleFlight.run(["a"]) { _, _ in
                    try await gate.pass()
                    throw Broken()
                }
            }
        }
        try await waitForCallers(3, for: "a")
        gate.signal()
        for task in tasks { await #expect(throws: Broken.self) { try await task.value } }
        #expect(try await request("a").value == ["a": 1])
    }

    @Test func notifiesEachCallerOnceOfTheStart() async throws {
        let begun = Lock([0, 0, 0])
        let mayBegin = AsyncEvent()
        func join(_ caller: Int) -> Task<Void, any Error> {
            Task {
                _ = try await singleFlight.run(
                    ["a"],
                    onStart: { _ in
                        begun.withLock { $0[caller] += 1 }; return true
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
        try await waitForCallers(2, for: "a")
        #expect(begun.withLock { $0 } == [0, 0, 0])
        mayBegin.signal()
        try await until("the early callers are notified") { begun.withLock({ $0 }) == [1, 1, 0] }
        let late = join(2)
        try await until("the late caller is notified") { begun.withLock({ $0 }) == [1, 1, 1] }
        gate.signal()
        for task in early + [late] { try await task.value }
        #expect(begun.withLock { $0 } == [1, 1, 1])
    }

    @Test(arguments: [[false, false], [false, true]])
    func operationStartsOnlyIfACallerStays(stays: [Bool]) async throws {
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
        try await waitForCallers(2, for: "a")
        mayBegin.signal()
        for task in tasks { _ = await task.result }
        #expect(hasBegun.withLock { $0 } == stays.contains(true))
    }

    @Test func callerThatJoinsDuringTheStartKeepsTheOperation() async throws {
        let (isAsked, hasJoined) = (AsyncEvent(), Latch())
        let leaving = Task {
            try await singleFlight.run(
                ["a"],
                onStart: { _ in
                    isAsked.signal()
                    hasJoined.wait()
                    return false
                }
            ) { flight, _ in
                let isWanted = await blocking { flight.markStarted() }
                guard isWanted else { throw CancellationError() }
                flight.complete("a", with: 1)
            }
        }
        await isAsked.wait()
        let staying = request("a")
        try await waitForCallers(2, for: "a")
        hasJoined.open()
        #expect(try await staying.value == ["a": 1])
        _ = await leaving.result
    }

    /// A caller that another operation has asked remains without being asked again.
    @Test func callerThatWasAskedBeforeKeepsTheOperation() async throws {
        let (mayStart, hasStarted) = (AsyncEvent(), AsyncEvent())
        @Sendable func work(_ flight: SingleFlightGroup<String, Int>.Operation, _ keys: [String]) async throws {
            if keys == ["b"] { await mayStart.wait() }
            guard flight.markStarted() else { throw CancellationError() }
            if keys == ["a"] {
                hasStarted.signal()
                try await gate.pass()
            }
            for key in keys { flight.complete(key, with: 1) }
        }
        let first = Task { try await singleFlight.run(["a"], work) }
        await hasStarted.wait()
        // The operation on the first key has asked this caller when it joined.
        let both = Task { try await singleFlight.run(["a", "b"], work) }
        try await waitForCallers(1, for: "b")
        let leaving = Task { try await singleFlight.run(["b"], onStart: { _ in false }, work) }
        try await waitForCallers(2, for: "b")
        mayStart.signal()
        _ = await leaving.result
        gate.signal()
        let values = try await both.value.mapValues(\.value)
        #expect(values == ["a": 1, "b": 1])
        _ = try await first.value
    }

    @Test func notifiesCallersBeforeTheyWaitForAnotherOperation() async throws {
        let first = Task { try await singleFlight.run(["a"], perform)["a"]?.value }
        try await waitForCallers(1, for: "a")
        let joined = Lock<[String]>([])
        func request(_ keys: String...) -> Task<Void, any Error> {
            Task { _ = try await singleFlight.run(keys, onJoin: { joined.withLock { $0 += keys } }, perform) }
        }
        let others = [request("a"), request("b"), request("a", "c")]
        try await waitForCallers(3, for: "a")
        try await waitForCallers(1, for: "b")
        try await until("the caller is notified") { !joined.withLock { $0.isEmpty } }
        gate.signal()
        for other in others { _ = try await other.value }
        _ = try await first.value
        #expect(joined.withLock { $0 } == ["a"])
    }

    @Test func moreUrgentCallerEscalatesTheOperation() async throws {
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
        try await until("the operation has started") { urgency.withLock({ $0 }) != nil }
        _ = urgency.withLock { $0 }!.listen { level in levels.withLock { $0.append(level) } }
        let others = [join(2), join(0)]
        try await waitForCallers(3, for: "a")
        // The level changes before its listeners are called.
        try await until("the change is reported") { levels.withLock { !$0.isEmpty } }
        #expect(levels.withLock { $0 } == [0] && urgency.withLock { $0 }!.level == 0)
        gate.signal()
        for task in [low] + others { try await task.value }
    }

    @Test func keepAliveContinuesAnAbandonedOperation() async throws {
        let isWanted = Lock(true)
        let calls = Lock(0)
        let (hasStarted, isCancelled) = (Lock(false), Lock(false))
        let task = Task {
            try await singleFlight.run(["a"]) { flight, _ in
                flight.keepAlive {
                    calls.withLock { $0 += 1 }
                    return isWanted.withLock { $0 }
                }
                hasStarted.withLock { $0 = true }
                do { try await gate.pass() } catch {
                    isCancelled.withLock { $0 = true }
                    throw error
                }
            }
        }
        // If the caller left before `keepAlive` is set, the operation would be cancelled.
        try await until("the operation has started") { hasStarted.withLock { $0 } }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        try await until("keepAlive was called twice") { calls.withLock({ $0 }) >= 2 }
        #expect(!isCancelled.withLock { $0 })
        #expect(singleFlight.operationCount == 1)
        // A new caller starts another operation, which ends independently.
        let late = Task { try await singleFlight.run(["a"]) { flight, _ in flight.complete("a", with: 7) } }
        #expect(try await late.value["a"]?.value == 7)
        try await until("the other operation has ended") { singleFlight.operationCount == 1 }
        #expect(!isCancelled.withLock { $0 })
        isWanted.withLock { $0 = false }
        try await until("the operation was cancelled") { isCancelled.withLock({ $0 }) }
        try await until("no operation is left") { singleFlight.operationCount == 0 }
    }
}

extension AsyncEvent {
    /// Waits until the event is signaled. Throws if the task is cancelled before.
    fileprivate func pass() async throws {
        await wait()
        if !isSignaled { throw CancellationError() }
    }
}
