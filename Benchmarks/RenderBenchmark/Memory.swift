import Concurrency
import Glibc
import HalcyonImaging
import HalcyonModel
import Measuring
import Subprocess
import Vips

extension RenderBenchmark {
    /// The memory of the process while it renders 10,000 mixed sources on two threads, looked at after each thousand, when
    /// nothing is running.
    static func watchMemory(_ subjects: Subjects) async throws {
        let pool = Renderer.makePool(threads: 2)
        let service = RenderService(renderer: Renderer(), pool: pool, children: nil)
        let jobs = mixedJobs(of: subjects)
        say("after   resident MiB   of that after 1000   objects, buffers of libvips   failed   CPU s")
        var (first, failed, random) = (0, 0, Pick(state: 1))
        for thousand in 1...10 {
            let picks = (0..<1000).map { _ in jobs[random.next(below: jobs.count)] }
            failed += await withTaskGroup(of: Bool.self) { group in
                var failed = 0
                for (index, job) in picks.enumerated() {
                    // Two run and two wait, as in a worker.
                    if index >= 4, await group.next() == false { failed += 1 }
                    group.addTask { (try? await service.render(job.file, job.variants)) != nil }
                }
                for await succeeded in group where !succeeded { failed += 1 }
                return failed
            }
            let resident = residentBytes()
            if thousand == 1 { first = resident }
            say(
                String(thousand * 1000).column(8) + decimal(Double(resident) / 1_048_576, 1).column(15)
                    + decimal(Double(resident) / Double(first), 3).column(21)
                    + "\(VipsLibrary.liveObjects), \(VipsLibrary.liveBuffers)".column(29) + String(failed).column(9)
                    + decimal(processorTime(), 1))
        }
        NamedThread(name: "closer") { pool.shutdown() }.join()
    }

    private struct MixedJob: Sendable {
        let file: [UInt8]
        let variants: [Variant]
    }

    /// Formats and sizes that a site has, the large ones seldom; animations; one in ten damaged or no image at all.
    private static func mixedJobs(of subjects: Subjects) -> [MixedJob] {
        let usual = subjects.small + subjects.smallPNG + subjects.smallWebP
        let sides = [(48, 48), (200, 150), (400, 300), (800, 600)]
        var jobs: [MixedJob] = []
        for (index, file) in usual.enumerated() {
            for (width, height) in sides {
                for format in width > 400 ? [ImageFormat.jpeg, .webp] : [.jpeg, .webp, .png] {
                    jobs.append(MixedJob(file: file, variants: [variant(width, height, OutputOptions(format: format))]))
                }
            }
            let avif = variant(100, 75, OutputOptions(format: .avif, effort: 0))
            let round = Variant(
                sizing: Sizing(
                    goal: .display(Display(width: 300, height: 300, contentMode: .scaleAspectFit)), gravity: .attention),
                output: OutputOptions(format: .webp), findings: [.blurhash, .dominantColor])
            let three = sides.dropFirst().map { variant($0.0, $0.1, OutputOptions(format: .jpeg)) }
            jobs += [[avif], [round], three].map { MixedJob(file: file, variants: $0) }
            let cut = Array(file.prefix(file.count / (index + 2)))
            jobs += [MixedJob(file: cut, variants: three), MixedJob(file: cut, variants: [round])]
            jobs.append(MixedJob(file: Array(file.dropFirst(9)), variants: [round]))
        }
        for file in subjects.large + subjects.middlePNG.prefix(1) + subjects.middleWebP.prefix(1) {
            jobs.append(MixedJob(file: file, variants: [variant(400, 300, OutputOptions(format: .webp))]))
        }
        for format in [ImageFormat.gif, .webp, .jpeg] {
            let moving = MixedJob(
                file: subjects.animation, variants: [variant(200, 150, OutputOptions(format: format))])
            jobs += [moving, moving]
        }
        return jobs
    }
}

/// A linear congruential generator (Knuth's MMIX), so that all runs take the same jobs.
private struct Pick {
    var state: UInt64

    mutating func next(below bound: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int((state >> 33) % UInt64(bound))
    }
}
