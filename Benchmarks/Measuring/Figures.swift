import Glibc
import Subprocess

/// The middle one of the values.
public func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

/// A number of at least 0 with so many decimals.
public func decimal(_ value: Double, _ places: Int) -> String {
    let unit = Int(pow(10, Double(places)))
    let scaled = Int((value * Double(unit)).rounded())
    return "\(scaled / unit)\(places > 0 ? "." : "")\(String(unit + scaled % unit).dropFirst())"
}

/// The values a quarter and three quarters of the way up: half of all lies between them.
public func quartiles(_ values: [Double]) -> (low: Double, high: Double) {
    let sorted = values.sorted()
    return (sorted[sorted.count / 4], sorted[sorted.count - 1 - sorted.count / 4])
}

/// Seconds of CPU, user and system over all threads, that this process has used.
public func processorTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Seconds of CPU that another process has used so far, from /proc (proc_pid_stat(5), fields 14 and 15).
public func processorTime(of pid: pid_t) -> Double {
    let text = systemText(of: "/proc/\(pid)/stat")
    // The second field is a name in parentheses, which may hold anything.
    let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
    guard fields.count > 13, let user = Double(fields[12]), let system = Double(fields[13]) else { return 0 }
    return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
}

/// Prints a line at once, also into a file.
public func say(_ line: String) {
    print(line)
    fflush(nil)
}
