import Glibc

/// The built `halcyon` executable, for tests of the command line.
public enum HalcyonExecutable {
    /// The path in HALCYON_EXECUTABLE, or else the executable that was built with the tests.
    public static let path = getenv("HALCYON_EXECUTABLE").map { String(cString: $0) } ?? BuiltExecutable.path("halcyon")
}
