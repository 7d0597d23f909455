import Glibc
import Testing

@testable import Subprocess

struct ResourceLimitsTests {
    @Test func doesNotExceedTheMachine() {
        #expect((1...sysconf(Int32(_SC_NPROCESSORS_CONF))).contains(ResourceLimits.processors))
        #expect(ResourceLimits.memory > residentBytes())
        #expect(ResourceLimits.memory <= sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE)))
    }

    @Test(
        arguments: [
            ("max 100000", nil), ("-1 100000", nil), ("", nil), (" ", nil), ("100000", nil), ("x y", nil), ("1 0", nil),
            ("200000 100000", 2), ("150000 100000", 2), ("50000 100000", 1), ("1000 100000", 1), ("6400000 100000", 64),
        ] as [(String, Int?)])
    func roundsProcessorQuotaUp(text: String, processors: Int?) {
        #expect(ResourceLimits.quota(text) == processors)
    }
}
