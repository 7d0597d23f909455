import Subprocess
import TestSupport

/// A library for LD_PRELOAD that shifts the real-time clock of a process, and no other clock.
///
/// faketime would shift too much: it also shifts the timeouts passed to C11's condition variables, but not the clock
/// that they wait on, and librdkafka's threads never start.
struct ShiftedClock: Sendable {
    private static let code = """
        #include <stdlib.h>
        #include <sys/syscall.h>
        #include <time.h>
        #include <unistd.h>
        int clock_gettime(clockid_t clock, struct timespec *time) {
            long result = syscall(SYS_clock_gettime, clock, time);
            const char *shift = getenv("CLOCK_SHIFT");
            if (result == 0 && clock == CLOCK_REALTIME && shift) time->tv_sec += atol(shift);
            return (int)result;
        }
        """

    private let folder: TemporaryFolder

    /// Builds the library with the clang of the Swift toolchain.
    init() async throws {
        folder = TemporaryFolder("clock")
        let source = folder.write(Self.code.utf8, to: "clock.c")
        let exit = try await ChildProcess.start(
            "clang", ["-shared", "-fPIC", "-O", "-o", "\(folder.path)/clock.so", source]
        ).exit()
        guard exit == .code(0) else {
            throw ConditionTimeout(description: "clang failed to build the clock library: \(exit)")
        }
    }

    /// Returns environment variables for a process whose clock is ahead by this many seconds.
    func environment(ahead seconds: Int) -> [String: String] {
        ["LD_PRELOAD": "\(folder.path)/clock.so", "CLOCK_SHIFT": "\(seconds)"]
    }

    func remove() async { await folder.remove() }
}
