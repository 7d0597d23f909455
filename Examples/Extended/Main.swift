import HalcyonCLI
import HalcyonImaging
import HalcyonSources

/// Halcyon with a custom processor, sizer and source provider. All commands support them, including `worker` and `render`.
@main
struct Main {
    static func main() throws {
        HalcyonProgram.main(
            extensions: try Extensions(processors: [Posterize()], sizers: [Square()]),
            providers: try CustomProviders([Chart()]))
    }
}
