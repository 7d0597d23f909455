import Glibc

/// The built `halcyon`, for tests that run it as its users do.
public enum HalcyonExecutable {
    /// What HALCYON_EXECUTABLE names, else the one that was built beside the tests.
    public static let path: String = {
        if let path = getenv("HALCYON_EXECUTABLE") { return String(cString: path) }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = buffer.withUnsafeMutableBytes { readlink("/proc/self/exe", $0.baseAddress!, $0.count) }
        let tests = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
        return tests.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" } + "/halcyon"
    }()
}
