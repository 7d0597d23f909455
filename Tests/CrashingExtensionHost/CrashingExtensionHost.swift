import HalcyonCLI
import HalcyonImaging
import HalcyonSources

/// Halcyon with a processor and a provider that do not come back, for tests: each notes in a file that it was called.
@main
struct CrashingExtensionHost {
    static func main() throws {
        HalcyonProgram.main(
            extensions: try Extensions(processors: [CrashingProcessor()]),
            providers: try CustomProviders([CrashingProvider()]))
    }
}
