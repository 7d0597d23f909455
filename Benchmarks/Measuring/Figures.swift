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

/// Seconds of CPU that another process has used so far, user and system over all threads; 0 if it has ended.
public func processorTime(of pid: pid_t) -> Double {
    var (clock, time) = (clockid_t(), timespec())
    guard clock_getcpuclockid(pid, &clock) == 0, clock_gettime(clock, &time) == 0 else { return 0 }
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// The highest resident memory of another process so far in bytes (proc_pid_status(5)); 0 if it has ended.
public func peakMemory(of pid: pid_t) -> Int {
    for line in systemText(of: "/proc/\(pid)/status").split(separator: "\n") {
        let words = line.split(whereSeparator: \.isWhitespace)
        if words.first == "VmHWM:" { return words.dropFirst().first.flatMap { Int($0) }.map { $0 << 10 } ?? 0 }
    }
    return 0
}

/// The value that a part of all values does not exceed; 0 if there are none.
public func percentile(_ values: [Double], _ part: Double) -> Double {
    let sorted = values.sorted()
    return sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
}

/// Prints a line at once, also into a file.
public func say(_ line: String) {
    print(line)
    fflush(nil)
}
