import HalcyonCLI

/// The program as it is shipped. One with processors and sizers of its own looks the same: see docs/extending.md.
@main
struct Main {
    static func main() { HalcyonProgram.main() }
}
