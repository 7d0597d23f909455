import HalcyonCommand
import HalcyonImaging
import HalcyonSources

/// Halcyon with a processor, a sizer and a kind of source more: every command, `worker` and `render` among them, knows them.
@main
struct Main {
    static func main() throws {
        HalcyonCommand.main(
            extensions: try Extensions(processors: [Posterize()], sizers: [Square()]),
            providers: try CustomProviders([Chart()]))
    }
}
