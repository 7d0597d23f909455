import Glibc
import Testing

/// The set of tests that runs: all tests, or only those of `make test`.
public enum TestTier {
    /// False under `make test`, which sets HALCYON_TESTS=fast.
    public static let isFull = getenv("HALCYON_TESTS").map { String(cString: $0) } != "fast"
    fileprivate static let reason: Comment = "make test-all runs it"

    /// True if only `make test-all` runs the test.
    static func isExtended(_ test: Test) -> Bool {
        test.traits.contains { ($0 as? ConditionTrait)?.comments.contains(reason) == true }
    }
}

extension Trait where Self == ConditionTrait {
    /// A test that only `make test-all` runs: it kills or pauses servers, needs a browser or another language, or takes
    /// many seconds.
    public static var extended: Self { .enabled(if: TestTier.isFull, TestTier.reason) }
}
