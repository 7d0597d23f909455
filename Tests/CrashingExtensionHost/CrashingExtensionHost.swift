import HalcyonCLI
import HalcyonImaging
import HalcyonSources

/// Halcyon with a processor and a provider that crash or hang, for tests. Each appends its calls to a file.
@main
struct CrashingExtensionHost {
    static func main() throws {
        HalcyonProgram.main(
            extensions: try Extensions(processors: [CrashingProcessor()]),
            providers: try CustomProviders([CrashingProvider()]))
    }
}
