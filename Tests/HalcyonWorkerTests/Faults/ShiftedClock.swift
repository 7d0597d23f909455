import Subprocess
import TestSupport

/// A library for LD_PRELOAD that moves the civil clock of a process, and no other clock.
///
/// faketime would do more than it should: it also moves what C11's condition variables are asked for and not what they wait for, and
/// librdkafka's threads never start.
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

    /// Builds it with the compiler that comes with Swift.
    init() async throws {
        folder = TemporaryFolder("clock")
        let source = folder.write(Self.code.utf8, to: "clock.c")
        let exit = try await ChildProcess.start(
            "clang", ["-shared", "-fPIC", "-O", "-o", "\(folder.path)/clock.so", source]
        ).exit()
        guard exit == .code(0) else { throw NotInTime(description: "clang does not build a clock: \(exit)") }
    }

    /// What a process has in its environment whose clock is so many seconds ahead.
    func environment(ahead seconds: Int) -> [String: String] {
        ["LD_PRELOAD": "\(folder.path)/clock.so", "CLOCK_SHIFT": "\(seconds)"]
    }

    func remove() async { await folder.remove() }
}
