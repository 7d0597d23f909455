import Glibc
import Testing

/// The set of tests that runs: all tests, or only those of `make test`.
public enum TestTier {
    /// False under `make test`, which sets HALCYON_TESTS=fast.
    public static let isFull = getenv("HALCYON_TESTS").map { String(cString: $0) } != "fast"
}

extension Trait where Self == ConditionTrait {
    /// A test that only `make test-all` runs: it kills or pauses servers, needs a browser or another language, or takes
    /// many seconds.
    public static var extended: Self { .enabled(if: TestTier.isFull, "make test-all runs it") }
}
