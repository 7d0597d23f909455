import Glibc

/// The built `halcyon`, for tests that run it as its users do.
public enum HalcyonExecutable {
    /// What HALCYON_EXECUTABLE names, else the one that was built with the tests.
    public static let path: String = {
        if let named = getenv("HALCYON_EXECUTABLE") { return String(cString: named) }
        // The tests run in a runner of the toolchain's or in an executable beside the products; their bundle tells the folder.
        let folder = CommandLine.arguments.lazy.map {
            $0.split(separator: "/", omittingEmptySubsequences: false).dropLast()
        }
        .map { $0.joined(separator: "/") + "/halcyon" }.first { access($0, X_OK) == 0 }
        return folder ?? ".build/debug/halcyon"
    }()
}
