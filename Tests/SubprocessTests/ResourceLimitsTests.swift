import Foundation
import TestSupport
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

    /// Returns the limits of a process in these groups, whose limits are in these files.
    private func limits(
        of membership: String, _ files: [String: String]
    ) async throws -> (memory: Int?, processors: Int?) {
        let folder = TemporaryFolder("cgroup")
        for (name, text) in files {
            let parent = name.split(separator: "/").dropLast().joined(separator: "/")
            try FileManager.default.createDirectory(
                atPath: "\(folder.path)/\(parent)", withIntermediateDirectories: true)
            folder.write("\(text)\n".utf8, to: name)
        }
        let group = ResourceLimits.ControlGroup(root: folder.path, membership: membership)
        let found = (group.memory, group.processors)
        await folder.remove()
        return found
    }

    /// A systemd unit has no cgroup namespace.
    @Test func lowestLimitAboveTheGroupApplies() async throws {
        let unit = "system.slice/halcyon-worker.service"
        let files = [
            "\(unit)/memory.max": "1073741824", "system.slice/memory.max": "max", "\(unit)/cpu.max": "max 100000",
            "system.slice/cpu.max": "250000 100000", "other.slice/memory.max": "4096",
        ]
        let found = try await limits(of: "0::/\(unit)\n", files)
        #expect(found.memory == 1 << 30 && found.processors == 3)
    }

    @Test func eachControllerOfVersion1HasAGroup() async throws {
        let files = [
            "memory/memory.limit_in_bytes": "9223372036854771712", "memory/a/memory.limit_in_bytes": "2147483648",
            "memory/a/b/memory.limit_in_bytes": "4294967296", "cpu/c/cpu.cfs_quota_us": "150000",
            "cpu/c/cpu.cfs_period_us": "100000", "cpu/a/cpu.cfs_quota_us": "10000",
            "cpu/a/cpu.cfs_period_us": "100000",
        ]
        let membership = "4:memory:/a/b\n3:cpu,cpuacct:/c\n1:name=systemd:/a\n0::/a\n"
        let found = try await limits(of: membership, files)
        #expect(found.memory == 2 << 30 && found.processors == 2)
    }

    /// In a container, the root is its own group, with or without a cgroup namespace.
    @Test(arguments: ["0::/\n", "0::/docker/0123\n", "0::/../other\n", ""])
    func rootOfAContainerIsItsGroup(membership: String) async throws {
        let found = try await limits(of: membership, ["memory.max": "536870912", "cpu.max": "50000 100000"])
        #expect(found.memory == 512 << 20 && found.processors == 1)
    }

    @Test func groupsWithoutLimitsLimitNothing() async throws {
        let found = try await limits(of: "0::/a\n", ["a/memory.max": "max", "a/cpu.max": "max 100000"])
        #expect(found.memory == nil && found.processors == nil)
    }
}
