import HalcyonCommand
import HalcyonImaging

/// Halcyon with a processor and a sizer more: every command, `worker` and `render` among them, knows them.
@main
struct Main {
    static func main() throws {
        HalcyonCommand.main(extensions: try Extensions(processors: [Posterize()], sizers: [Square()]))
    }
}
