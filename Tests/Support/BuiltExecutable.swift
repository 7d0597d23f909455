import Glibc

/// An executable of this package that was built with the tests.
public enum BuiltExecutable {
    /// Returns the path of the executable called `name`.
    public static func path(_ name: String) -> String {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = buffer.withUnsafeMutableBytes { readlink("/proc/self/exe", $0.baseAddress!, $0.count) }
        let tests = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
        return tests.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" } + "/" + name
    }
}
