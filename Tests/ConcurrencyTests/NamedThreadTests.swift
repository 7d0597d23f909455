import Concurrency
import Glibc
import Testing

@Suite struct NamedThreadTests {
    @Test func brokenPipeIsAnErrorInsteadOfASignal() {
        let result = Lock<(blocked: Bool, error: Int32)>((false, 0))
        NamedThread(name: "writer") {
            var mask = sigset_t()
            pthread_sigmask(SIG_BLOCK, nil, &mask)
            var ends: [Int32] = [0, 0]
            #expect(pipe(&ends) == 0)
            close(ends[0])
            let error = write(ends[1], "x", 1) < 0 ? errno : 0
            close(ends[1])
            let blocked = sigismember(&mask, SIGPIPE) == 1
            result.withLock { $0 = (blocked, error) }
        }.join()
        let (blocked, error) = result.withLock { $0 }
        #expect(blocked && error == EPIPE)
    }

    /// With 64 KiB, of which the variables of libraries took a third, printing a generic value could overflow a stack.
    @Test func stackHasRoomForDeepCalls() {
        /// Takes more than 1 KiB of stack per level.
        @inline(never) @Sendable func depth(_ levels: Int) -> Int {
            var bytes = InlineArray<1024, UInt8>(repeating: UInt8(truncatingIfNeeded: levels))
            if levels > 1 { bytes[levels] = UInt8(truncatingIfNeeded: depth(levels - 1)) }
            return levels > 1 ? Int(bytes[levels - 1]) : Int(bytes[0])
        }
        let last = Lock(0)
        NamedThread(name: "deep") { last.withLock { $0 = depth(600) } }.join()
        #expect(last.withLock { $0 } == 600 % 256)
    }
}
