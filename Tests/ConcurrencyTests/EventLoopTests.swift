import Concurrency
import Glibc
import Testing

@Suite struct EventLoopTests {
    /// An actor that runs on an event loop, like a connection of the HTTP server.
    actor LoopActor {
        let loop: EventLoop
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
        private(set) var fired: [String] = []

        init(_ loop: EventLoop) { self.loop = loop }

        func isOnLoop() -> Bool { loop.isCurrent }

        func fireTimers() async {
            await withCheckedContinuation { continuation in
                let cancelled = loop.schedule(after: .milliseconds(5)) {
                    self.assumeIsolated { $0.fired.append("cancelled") }
                }
                loop.schedule(after: .milliseconds(20)) {
                    self.assumeIsolated { $0.fired.append("late") }
                    continuation.resume()
                }
                // So far in the past that no pause of this thread makes it the later one.
                loop.schedule(after: .seconds(-60)) { self.assumeIsolated { $0.fired.append("early") } }
                loop.cancel(cancelled)
            }
        }

        func firstByte(of descriptor: Int32) async -> UInt8 {
            await withCheckedContinuation { continuation in
                loop.watch(descriptor, for: .readable) { [loop] readiness in
                    var byte: UInt8 = 0
                    #expect(readiness.contains(.readable))
                    #expect(read(descriptor, &byte, 1) == 1)
                    loop.unwatch(descriptor)
                    continuation.resume(returning: byte)
                }
            }
        }
    }

    @Test func runsActorsOnlyOnItsThread() async {
        let loop = EventLoop(name: "loop")
        let loopActor = LoopActor(loop)
        #expect(await loopActor.isOnLoop())
        #expect(!loop.isCurrent)
        NamedThread(name: "stopper") { loop.stop() }.join()
    }

    @Test func firesTimersInOrderExceptCancelledOnes() async {
        let loop = EventLoop(name: "loop")
        let loopActor = LoopActor(loop)
        await loopActor.fireTimers()
        #expect(await loopActor.fired == ["early", "late"])
        NamedThread(name: "stopper") { loop.stop() }.join()
    }

    @Test func reportsReadableDescriptors() async {
        let loop = EventLoop(name: "loop")
        let loopActor = LoopActor(loop)
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        let (reader, writer) = (ends[0], ends[1])
        async let byte = loopActor.firstByte(of: reader)
        #expect(write(writer, [7] as [UInt8], 1) == 1)
        #expect(await byte == 7)
        NamedThread(name: "stopper") { loop.stop() }.join()
        close(reader)
        close(writer)
    }

    @Test func runsJobsSubmittedByManyTasks() async {
        let loop = EventLoop(name: "loop")
        let loopActor = LoopActor(loop)
        let all = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<2_000 { group.addTask { await loopActor.isOnLoop() } }
            return await group.allSatisfy { $0 }
        }
        #expect(all)
        NamedThread(name: "stopper") { loop.stop() }.join()
    }

    @Test func performsCallsInOrderOnItsThread() async {
        let loop = EventLoop(name: "loop")
        let seen = Lock<[Int]>([])
        await withCheckedContinuation { continuation in
            for number in 0..<100 {
                loop.perform { if loop.isCurrent { seen.withLock { $0.append(number) } } }
            }
            loop.perform { continuation.resume() }
        }
        #expect(seen.withLock { $0 } == Array(0..<100))
        NamedThread(name: "stopper") { loop.stop() }.join()
    }
}
