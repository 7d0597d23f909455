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
}
