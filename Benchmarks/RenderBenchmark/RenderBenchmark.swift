import Glibc
import HalcyonImaging
import HalcyonModel
import Measuring
import Threads
import Vips

/// What a rendering costs beside the plainest loop in C over the same pictures: `RenderBenchmark FOLDER [ROUNDS]`.
///
/// Every JPEG of the folder becomes 400×300 at quality 80, in rounds that take turns (`vips_thumbnail`, the fast loop,
/// the renderer on one thread of a pool), so that whatever else the machine does meets all three alike. Prints the
/// median CPU time of a picture, user and system, over all threads, and the median of the rounds' ratios.
@main struct RenderBenchmark {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 1, let rounds = arguments.count > 2 ? Int(arguments[2]) : 15, rounds > 0 else {
            print("usage: RenderBenchmark FOLDER [ROUNDS]   FOLDER holds JPEG photographs, some 1600 pixels a side")
            exit(2)
        }
        let files = try jpegs(in: arguments[1])
        let renderer = Renderer()
        let pool = Renderer.makePool(threads: 1)
        let variant = Variant(
            sizing: Sizing(
                goal: .display(Display(width: Double(PlainLoops.size.width), height: Double(PlainLoops.size.height)))),
            output: OutputOptions(format: .jpeg, quality: 80))

        var costs: [(thumbnail: Double, fast: Double, renderer: Double)] = []
        var bytes = (thumbnail: 0, fast: 0, renderer: 0)
        var (decode, process, encode) = (Duration.zero, Duration.zero, Duration.zero)
        for round in 0...rounds {
            let start = processorTime()
            bytes.thumbnail = PlainLoops.thumbnail(files)
            let afterThumbnail = processorTime()
            bytes.fast = PlainLoops.fast(files)
            let afterFast = processorTime()
            bytes.renderer = 0
            for file in files {
                let image = try await renderer.render(file, [variant], on: pool)
                bytes.renderer += image.images[0].body.count
                decode += image.timings.decode
                process += image.timings.process
                encode += image.timings.encode
            }
            // The first round warms up.
            guard round > 0 else { continue }
            costs.append((afterThumbnail - start, afterFast - afterThumbnail, processorTime() - afterFast))
        }
        WorkThread(name: "closer") { pool.shutdown() }.join()

        let pictures = Double(files.count)
        func line(_ name: String, _ seconds: [Double], _ bytes: Int) {
            let cost = decimal(median(seconds) / pictures * 1e3, 2)
            print("\(name)  \(cost) ms CPU a picture  \(Int(Double(bytes) / pictures)) bytes")
        }
        print("\(files.count) pictures, \(rounds) rounds, libvips \(VipsLibrary.version)")
        line("vips_thumbnail", costs.map(\.thumbnail), bytes.thumbnail)
        line("fast loop     ", costs.map(\.fast), bytes.fast)
        line("Halcyon       ", costs.map(\.renderer), bytes.renderer)
        print(
            "Halcyon is \(decimal(median(costs.map { $0.renderer / $0.thumbnail }), 3)) of vips_thumbnail,"
                + " \(decimal(median(costs.map { $0.renderer / $0.fast }), 3)) of the fast loop")
        let all = pictures * Double(rounds + 1)
        print(
            "wall ms a picture: decode and resize \(decimal(decode / .milliseconds(1) / all, 2)),"
                + " process \(decimal(process / .milliseconds(1) / all, 2)),"
                + " encode \(decimal(encode / .milliseconds(1) / all, 2))")
    }
}
