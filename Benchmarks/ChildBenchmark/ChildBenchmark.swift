import Concurrency
import Glibc
import HalcyonImaging
import HalcyonModel
import Measuring

/// What it costs to render in a child: `ChildBenchmark FOLDER [ROUNDS]`.
///
/// The folder's first photograph, as a JPEG of 1600×1200 pixels, becomes 400×300, twenty times here and twenty times in a warm child, in rounds that take
/// turns. Prints the medians of the rounds; CPU time is that of both processes. Then how long after its deadline a child in
/// the middle of a large AVIF is gone, and what a time limit costs that is set and taken back, which happens with every
/// rendering.
@main struct ChildBenchmark {
    static func main() async throws {
        let arguments = CommandLine.arguments
        // It is its own child.
        if arguments.dropFirst().elementsEqual(RenderProcessOptions().arguments) { exit(RenderProcessProgram.run()) }
        guard arguments.count > 1, let rounds = arguments.count > 2 ? Int(arguments[2]) : 15, rounds > 0 else {
            print("usage: ChildBenchmark FOLDER [ROUNDS]")
            exit(2)
        }
        let pool = Renderer.makePool(threads: 1)
        let children = RenderProcessPool(RenderProcessOptions()) { print($0) }
        let here = RenderService(renderer: Renderer(), pool: pool, children: nil)
        let there = RenderService(renderer: Renderer(), pool: pool, children: children)

        let source = try await here.render(
            try jpegs(in: arguments[1])[0], [variant(1600, 1200, .jpeg)]
        ).images[0].body
        let start = ContinuousClock.now
        _ = try await there.render(source, [variant(8, 6, .jpeg)], isolation: .always)
        let first = start.duration(to: .now)

        print("from a JPEG of 1600×1200 pixels, \(source.count) bytes, to 400×300")
        for format in [ImageFormat.jpeg, .webp, .avif] {
            var costs: [RenderService.Isolation: [Cost]] = [:]
            for _ in 0...rounds {
                for (service, isolation) in [(here, RenderService.Isolation.whereNeeded), (there, .always)] {
                    let start = Cost.now(children)
                    for _ in 0..<20 {
                        _ = try await service.render(source, [variant(400, 300, format)], isolation: isolation)
                    }
                    costs[isolation, default: []].append(Cost.now(children).since(start, over: 20))
                }
            }
            for (name, isolation) in [("here", RenderService.Isolation.whereNeeded), ("in a child", .always)] {
                let costs = costs[isolation, default: []].dropFirst()
                print(
                    "\(format.rawValue) \(name): \(decimal(median(costs.map(\.cpu)), 2)) ms CPU,"
                        + " \(decimal(median(costs.map(\.wall)), 2)) ms")
            }
        }
        print("the first rendering, which starts a child: \(decimal(first / .milliseconds(1), 1)) ms")
        try await stops(there, source)
        limits()
        NamedThread(name: "closer") {
            pool.shutdown()
            children.shutdown()
        }.join()
    }

    private static func variant(_ width: Double, _ height: Double, _ format: ImageFormat) -> Variant {
        Variant(
            sizing: Sizing(goal: .display(Display(width: width, height: height))), output: OutputOptions(format: format)
        )
    }

    private static func stops(_ service: RenderService, _ source: [UInt8]) async throws {
        var slow = variant(6000, 4500, .avif)
        slow.output.effort = 9
        var late: [Double] = []
        for _ in 0..<7 {
            let rendering = Task { [slow] in try await service.render(source, [slow]) }
            try await Task.sleep(for: .seconds(4))
            let moment = ContinuousClock.now
            rendering.cancel()
            do {
                _ = try await rendering.value
                print("the machine is too fast for this")
            } catch is CancellationError {
                late.append(moment.duration(to: .now) / .milliseconds(1))
            }
        }
        guard !late.isEmpty else { return }
        print(
            "stopped \(decimal(median(late), 1)) ms after it was cancelled, at most \(decimal(late.max() ?? 0, 1)) ms")
    }

    private static func limits() {
        let timers = TimerThread(name: "alarms")
        let count = 200_000
        let start = processorTime()
        for _ in 0..<count { timers.cancel(timers.set(at: .now + .seconds(30)) {}) }
        print("a time limit: \(decimal((processorTime() - start) / Double(count) * 1e6, 2)) µs CPU")
    }
}

/// Milliseconds: so far, or of one rendering.
private struct Cost {
    var cpu: Double
    var wall: Double

    static func now(_ children: RenderProcessPool) -> Cost {
        let childs = children.processes.map { processorTime(of: $0) }.reduce(0, +)
        var clock = timespec()
        clock_gettime(CLOCK_MONOTONIC, &clock)
        return Cost(
            cpu: (processorTime() + childs) * 1e3, wall: Double(clock.tv_sec) * 1e3 + Double(clock.tv_nsec) / 1e6)
    }

    func since(_ start: Cost, over count: Double) -> Cost {
        Cost(cpu: (cpu - start.cpu) / count, wall: (wall - start.wall) / count)
    }
}
