import Glibc
import Subprocess

extension Metrics {
    /// Registers metrics of the process itself, under the names of Prometheus' client libraries
    /// (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics). They are available only on Linux
    /// and are 0 elsewhere. The memory limit is an additional metric.
    public func readProcess() {
        observable(.counter, "process_cpu_seconds_total", help: "Total user and system CPU time spent, in seconds.") {
            ProcessStatus.now.processorSeconds
        }
        observable(.gauge, "process_resident_memory_bytes", help: "Resident memory size, in bytes.") {
            ProcessStatus.now.residentBytes
        }
        observable(.gauge, "process_virtual_memory_bytes", help: "Virtual memory size, in bytes.") {
            ProcessStatus.now.virtualBytes
        }
        observable(.gauge, "process_start_time_seconds", help: "Start time of the process, in seconds since 1970.") {
            ProcessStatus.now.startTime
        }
        observable(.gauge, "process_open_fds", help: "Number of open file descriptors.") { ProcessStatus.openFiles }
        observable(.gauge, "process_max_fds", help: "Maximum number of open file descriptors.") {
            ProcessStatus.mostFiles
        }
        observable(
            .gauge, "process_memory_limit_bytes",
            help: "Memory limit of the process, in bytes: its control group's limit, or the machine's memory."
        ) { Double(ResourceLimits.memory) }
    }
}

/// The status of this process according to Linux (proc(5)).
public struct ProcessStatus: Sendable {
    /// The processor time of all threads in seconds.
    var processorSeconds = 0.0
    /// The resident memory in bytes; 0 if it is unknown.
    public private(set) var residentBytes = 0.0
    var virtualBytes = 0.0
    /// The start time in seconds since 1970.
    var startTime = 0.0

    /// The current status.
    public static var now: ProcessStatus {
        // The second field is the program's name in parentheses, which may contain any characters.
        let fields = systemText(of: "/proc/self/stat").split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 21 else { return ProcessStatus() }
        func number(_ field: Int) -> Double { Double(fields[field - 3]) ?? 0 }
        let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
        var status = ProcessStatus()
        status.processorSeconds = (number(14) + number(15)) / ticks
        status.residentBytes = number(24) * Double(sysconf(Int32(_SC_PAGESIZE)))
        status.virtualBytes = number(23)
        status.startTime = bootTime + number(22) / ticks
        return status
    }

    /// The number of open file descriptors.
    static var openFiles: Double {
        guard let folder = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(folder) }
        // Exclude `.`, `..` and the descriptor of the folder itself.
        var count = -3
        while readdir(folder) != nil { count += 1 }
        return Double(max(0, count))
    }

    /// The maximum number of open descriptors; infinity for no limit.
    static var mostFiles: Double {
        let line = systemText(of: "/proc/self/limits").split(separator: "\n").first { $0.hasPrefix("Max open files") }
        guard let soft = line?.dropFirst("Max open files".utf8.count).split(separator: " ").first else { return 0 }
        return Double(soft) ?? .infinity
    }

    /// The boot time of the machine in seconds since 1970.
    private static let bootTime: Double = {
        let line = systemText(of: "/proc/stat").split(separator: "\n").first { $0.hasPrefix("btime ") }
        return line.flatMap { Double($0.dropFirst("btime ".utf8.count)) } ?? 0
    }()
}
