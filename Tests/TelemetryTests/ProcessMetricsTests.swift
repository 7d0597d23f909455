import Formats
import Glibc
import Telemetry
import Testing

/// The metrics of the process that runs the tests.
@Suite struct ProcessMetricsTests {
    private let metrics = Metrics()

    init() { metrics.readProcess() }

    private func value(_ name: String) throws -> Double {
        let lines = String(decoding: metrics.prometheusText, as: UTF8.self).split(separator: "\n")
        let line = try #require(lines.first { $0.hasPrefix("\(name) ") })
        return try #require(Double(line.dropFirst(name.utf8.count + 1)))
    }

    @Test func processorTimeGrowsWithWork() throws {
        let before = try value("process_cpu_seconds_total")
        let end = ContinuousClock.now + .seconds(30)
        var last = before
        // The kernel counts in ticks of 10 ms.
        while last < before + 0.05, .now < end { last = try value("process_cpu_seconds_total") }
        #expect(last >= before + 0.05)
    }

    @Test func memoryIsWithinItsLimit() throws {
        let resident = try value("process_resident_memory_bytes")
        #expect(resident > 1e6)
        #expect(try value("process_virtual_memory_bytes") > resident)
        #expect(try value("process_memory_limit_bytes") > resident)
    }

    @Test func startTimeIsInThePast() throws {
        let age = Timestamp.now.seconds - (try value("process_start_time_seconds"))
        // The kernel rounds the boot time to a second.
        #expect((-2..<86_400).contains(age))
    }

    @Test func openFilesAreCounted() throws {
        let folder = open("/proc/self", O_RDONLY)
        #expect(folder >= 0)
        var growth = 0.0
        // Other tests open and close files at the same time, some of them thousands.
        for _ in 0..<100 where growth <= 100 {
            let before = try value("process_open_fds")
            let more = (0..<200).map { _ in dup(folder) }
            #expect(more.allSatisfy { $0 >= 0 })
            growth = try value("process_open_fds") - before
            for descriptor in more { close(descriptor) }
            #expect(try value("process_max_fds") >= before)
        }
        close(folder)
        #expect(growth > 100)
    }
}
