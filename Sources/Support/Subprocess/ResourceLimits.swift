import CLinux
import Glibc

/// The resources that this process may use: the limits of its control group (cgroups(7), either version), which include
/// those of a container or a systemd unit, and the processors to which it is bound (sched_setaffinity(2)). Without
/// limits, the resources of the machine.
public enum ResourceLimits {
    /// The memory limit in bytes.
    public static var memory: Int {
        min(ControlGroup.current.memory ?? .max, sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE)))
    }

    /// The number of processors that can be kept busy, at least 1. A fraction counts as one.
    public static var processors: Int {
        max(1, min(Int(clinux_bound_processors()), ControlGroup.current.processors ?? .max))
    }

    /// Parses `QUOTA PERIOD`, the processor time per period in microseconds; nil for no limit, which is `max` in
    /// version 2 and -1 in version 1.
    static func quota(_ text: String) -> Int? {
        let parts = text.split(separator: " ").map { Double($0) }
        guard parts.count == 2, let time = parts[0], let period = parts[1], time > 0, period > 0 else { return nil }
        return Int((time / period).rounded(.up))
    }

    /// The control groups of a process. Its limits are the lowest of its own group and of all groups above it.
    ///
    /// Inside a cgroup namespace, such as that of a container, its own group is the root. Where only the root of a
    /// container is mounted, groups below do not exist and are ignored.
    struct ControlGroup {
        /// The folder in which the hierarchies are mounted.
        let root: String
        /// The names of the groups, as in /proc/PID/cgroup.
        let membership: String

        /// The control groups of this process.
        static var current: ControlGroup {
            ControlGroup(root: "/sys/fs/cgroup", membership: systemText(of: "/proc/self/cgroup"))
        }

        /// The memory limit in bytes; nil for no limit.
        var memory: Int? {
            let unified = folders(of: "").compactMap { Int(line(of: "\($0)/memory.max")) }
            let separate = folders(of: "memory").compactMap { Int(line(of: "\($0)/memory.limit_in_bytes")) }
            return (unified + separate).min()
        }

        /// The number of processors that the limits keep busy, rounded up; nil for no limit.
        var processors: Int? {
            let unified = folders(of: "").compactMap { ResourceLimits.quota(line(of: "\($0)/cpu.max")) }
            let separate = folders(of: "cpu").compactMap { folder -> Int? in
                let (time, period) = (line(of: "\(folder)/cpu.cfs_quota_us"), line(of: "\(folder)/cpu.cfs_period_us"))
                return ResourceLimits.quota("\(time) \(period)")
            }
            return (unified + separate).min()
        }

        /// Returns the folders of the group of a controller and of all groups above it.
        /// - Parameter controller: The controller of version 1; empty for version 2, which has one hierarchy for all.
        private func folders(of controller: String) -> [String] {
            let mount = controller.isEmpty ? root : "\(root)/\(controller)"
            let groups = membership.split(separator: "\n").map {
                $0.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            }
            let group = groups.first { parts in
                parts.count == 3
                    && parts[1].split(separator: ",", omittingEmptySubsequences: false).contains { $0 == controller }
            }
            let names = group?[2].split(separator: "/") ?? []
            // The group of a process outside of its cgroup namespace is not visible.
            if names.contains("..") { return [mount] }
            return names.reduce(into: [mount]) { folders, name in
                folders.append("\(folders[folders.count - 1])/\(name)")
            }
        }

        private func line(of file: String) -> String { String(systemText(of: file).prefix { $0 != "\n" }) }
    }
}

/// The resident memory of a process in bytes (proc(5), statm: the second number counts pages); 0 if it cannot be read.
/// - Parameter pid: The process id; nil for this process.
public func residentBytes(of pid: pid_t? = nil) -> Int { pages(of: pid)(1) }

/// The resident memory of a process in bytes, without pages shared with files, such as the program and its libraries; 0
/// if it cannot be read.
/// - Parameter pid: The process id; nil for this process.
public func privateBytes(of pid: pid_t? = nil) -> Int {
    let bytes = pages(of: pid)
    return bytes(1) - bytes(2)
}

/// The highest value of ``privateBytes(of:)`` in this process during `body` (proc(5), VmHWM); nil if the system does
/// not measure it.
public func peakPrivateBytes<Success>(during body: () -> Success) -> (Success, peak: Int?) {
    let descriptor = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC)
    let isMeasured = descriptor >= 0 && write(descriptor, "5", 1) == 1
    if descriptor >= 0 { close(descriptor) }
    let result = body()
    let peak = systemText(of: "/proc/self/status").split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    guard isMeasured, let kilobytes = peak?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
        return (result, nil)
    }
    return (result, kilobytes * 1024 - pages(of: nil)(2))
}

/// The memory of this process in bytes that counts towards RLIMIT_DATA (getrlimit(2)), used or not; 0 if it cannot be
/// read.
public func dataBytes() -> Int { pages(of: nil)(5) }

/// The numbers of /proc/PID/statm, in bytes: size, resident, shared, text, 0, data.
private func pages(of pid: pid_t?) -> (Int) -> Int {
    let numbers = systemText(of: "/proc/\(pid.map(String.init) ?? "self")/statm").split(separator: " ")
    return { index in
        guard numbers.indices.contains(index), let count = Int(numbers[index]) else { return 0 }
        return count * sysconf(Int32(_SC_PAGESIZE))
    }
}

/// The text of a file that Linux generates when it is read (proc(5), cgroups(7)) and whose length is not known
/// beforehand; empty if it cannot be read.
public func systemText(of path: String) -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 4096)
    while true {
        let count = read(descriptor, &part, part.count)
        guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
        bytes += part.prefix(count)
    }
}
