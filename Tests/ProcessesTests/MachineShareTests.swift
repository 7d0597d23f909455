import Glibc
import Testing

@testable import Processes

struct MachineShareTests {
    @Test func theShareIsThatOfTheMachineAtMost() {
        #expect((1...sysconf(Int32(_SC_NPROCESSORS_CONF))).contains(MachineShare.processors))
        #expect(MachineShare.memory > residentBytes())
        #expect(MachineShare.memory <= sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE)))
    }

    @Test(
        arguments: [
            ("max 100000", nil), ("-1 100000", nil), ("", nil), (" ", nil), ("100000", nil), ("x y", nil), ("1 0", nil),
            ("200000 100000", 2), ("150000 100000", 2), ("50000 100000", 1), ("1000 100000", 1), ("6400000 100000", 64),
        ] as [(String, Int?)])
    func aQuotaIsRoundedUp(text: String, processors: Int?) {
        #expect(MachineShare.quota(text) == processors)
    }
}
