import Glibc
import Processes

extension Metrics {
    /// Tells of the process itself, by the names that Prometheus' own clients have for it
    /// (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics). Linux alone has them: elsewhere they are 0.
    /// The limit of memory is one more that they do not know.
    public func readProcess() {
        reading(.counter, "process_cpu_seconds_total", help: "Total user and system CPU time spent, in seconds.") {
            ProcessStatus.now.processorSeconds
        }
        reading(.gauge, "process_resident_memory_bytes", help: "Resident memory size, in bytes.") {
            ProcessStatus.now.residentBytes
        }
        reading(.gauge, "process_virtual_memory_bytes", help: "Virtual memory size, in bytes.") {
            ProcessStatus.now.virtualBytes
        }
        reading(.gauge, "process_start_time_seconds", help: "Start time of the process, in seconds since 1970.") {
            ProcessStatus.now.startTime
        }
        reading(.gauge, "process_open_fds", help: "Number of open file descriptors.") { ProcessStatus.openFiles }
        reading(.gauge, "process_max_fds", help: "Maximum number of open file descriptors.") {
            ProcessStatus.mostFiles
        }
        reading(
            .gauge, "process_memory_limit_bytes",
            help: "Memory that the process may have: its control group's limit, or what the machine has."
        ) { Double(MachineShare.memory) }
    }
}

/// What Linux says of this process (proc(5)).
struct ProcessStatus {
    /// Time on processors, of all threads.
    var processorSeconds = 0.0
    var residentBytes = 0.0
    var virtualBytes = 0.0
    /// Seconds since 1970.
    var startTime = 0.0

    /// As it is now.
    static var now: ProcessStatus {
        // The second field is the program's name in parentheses, in which anything may stand.
        let fields = systemText(of: "/proc/self/stat").split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 21 else { return ProcessStatus() }
        func number(_ field: Int) -> Double { Double(fields[field - 3]) ?? 0 }
        let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
        return ProcessStatus(
            processorSeconds: (number(14) + number(15)) / ticks,
            residentBytes: number(24) * Double(sysconf(Int32(_SC_PAGESIZE))), virtualBytes: number(23),
            startTime: bootTime + number(22) / ticks)
    }

    /// Open file descriptors.
    static var openFiles: Double {
        guard let folder = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(folder) }
        // Two names that every folder has, and the descriptor of the folder itself.
        var count = -3
        while readdir(folder) != nil { count += 1 }
        return Double(max(0, count))
    }

    /// Descriptors that may be open at once; infinity for any number.
    static var mostFiles: Double {
        let line = systemText(of: "/proc/self/limits").split(separator: "\n").first { $0.hasPrefix("Max open files") }
        guard let soft = line?.dropFirst("Max open files".utf8.count).split(separator: " ").first else { return 0 }
        return Double(soft) ?? .infinity
    }

    /// When the machine was started, in seconds since 1970.
    private static let bootTime: Double = {
        let line = systemText(of: "/proc/stat").split(separator: "\n").first { $0.hasPrefix("btime ") }
        return line.flatMap { Double($0.dropFirst("btime ".utf8.count)) } ?? 0
    }()
}
