import Concurrency
import Glibc
import HalcyonImaging
import HalcyonModel
import Measuring
import Vips

/// What rendering costs, part by part: `RenderBenchmark FOLDER [PART…]`.
///
/// FOLDER holds JPEG photographs. Sources of 12, 4 and 1 megapixels are made of them (``Subjects``). All costs are CPU time,
/// user and system, over all threads of the process, and all ratios come from rounds in which those that are compared took
/// turns.
@main struct RenderBenchmark {
    /// What can be asked for; without a word, the first three.
    enum Part: String, CaseIterable {
        case photographs, outputs, variants, memory, encoders, sizes, archive
    }

    static func main() async throws {
        let arguments = CommandLine.arguments
        let named = arguments.dropFirst(2).map(Part.init)
        guard arguments.count > 1, !named.contains(nil) else {
            let parts = Part.allCases.map(\.rawValue).joined(separator: " ")
            say("usage: RenderBenchmark FOLDER [PART…]   FOLDER holds JPEG photographs, parts are \(parts)")
            exit(2)
        }
        let parts = named.isEmpty ? [.photographs, .outputs, .variants] : named.compactMap { $0 }
        let photographs = try jpegs(in: arguments[1])
        let fixture = BenchmarkFixture()
        say("libvips \(VipsLibrary.version), \(photographs.count) photographs")
        for part in parts {
            say("\n\(part.rawValue)")
            switch part {
            case .photographs: try await comparePhotographs(photographs, on: fixture)
            case .outputs: try await compareOutputs(try Subjects(photographs), on: fixture)
            case .variants: try await compareVariants(try Subjects(photographs), on: fixture)
            case .memory: try await watchMemory(try Subjects(photographs))
            case .encoders: try await compareEncoders(try Subjects(photographs))
            case .sizes: try await compareSizes(photographs, on: fixture)
            case .archive: try await compareArchive(photographs, on: fixture)
            }
        }
        NamedThread(name: "closer") { fixture.pool.shutdown() }.join()
    }
}

/// The renderer, and one thread for it: what the plain loops have too.
struct BenchmarkFixture: Sendable {
    let renderer = Renderer()
    let pool = Renderer.makePool(threads: 1)

    /// Renders each file to the same variants, one after the other.
    func render(_ files: [[UInt8]], _ variants: [Variant]) async throws -> Work {
        var work = Work()
        for file in files {
            let rendering = try await pool.run { try renderer.render(file, variants) }
            work.bytes += rendering.images.reduce(0) { $0 + $1.body.count }
            work.images += rendering.images
            work.all += rendering.timings.decode + rendering.timings.process + rendering.timings.encode
            work.encoding += rendering.timings.encode
        }
        return work
    }
}

/// What was done in a round.
struct Work: Sendable {
    /// Bytes that were written.
    var bytes = 0
    /// The images that were rendered.
    var images: [RenderedImage] = []
    /// Wall-clock time of the renderer's steps.
    var all = Duration.zero
    /// Wall-clock time of encoding.
    var encoding = Duration.zero
}

extension String {
    /// This text in a column, to the left or to the right.
    func column(_ width: Int, right: Bool = false) -> String {
        let space = String(repeating: " ", count: max(0, width - count))
        return right ? space + self : self + space
    }
}
