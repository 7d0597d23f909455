import Glibc

/// The built `halcyon`, for tests that run it as its users do.
public enum HalcyonExecutable {
    /// What HALCYON_EXECUTABLE names, else the one that was built beside the tests.
    public static let path = getenv("HALCYON_EXECUTABLE").map { String(cString: $0) } ?? BuiltExecutable.path("halcyon")
}
