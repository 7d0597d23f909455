import HalcyonCommand
import HalcyonImaging
import HalcyonSources

/// Halcyon with a processor and a provider that do not come back, for tests: each notes in a file that it was called.
@main
struct DeadlyHost {
    static func main() throws {
        HalcyonCommand.main(
            extensions: try Extensions(processors: [DeadlyProcessor()]),
            providers: try CustomProviders([DeadlyProvider()]))
    }
}
