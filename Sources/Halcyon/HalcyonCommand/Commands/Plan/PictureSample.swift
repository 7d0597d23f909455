import Arguments
import Glibc
import HalcyonModel
import HalcyonWire
import Vips

/// What a job's pictures take, in the mean over those that were looked at.
struct PictureSample {
    /// Seconds of a processor for rendering one source into all its results.
    var processorTime: Double
    /// Bytes of each source.
    var sourceSizes: [Double]
    /// Bytes of a job's results together.
    var resultBytes: Double
    /// Bytes of memory at the height of a rendering.
    var memory = 64e6
    /// Results of a job.
    var outputs = 1
    /// How many pictures were looked at.
    var pictures = 0

    /// How long is rendered, at least, and what a picture is rendered at least.
    private static let (time, rounds) = (Duration.seconds(2), 3)

    /// Renders each of the sources again and again, on all of a worker's processors at once, as it is in a busy worker: two of them are often
    /// one that two threads share, and each takes longer then.
    /// - Throws: ``Failure``, ``FileError``, ``InputError``, `CancellationError`.
    static func measured(
        _ sources: [String], _ arguments: ParsedCommand, _ configuration: Configuration
    ) async throws -> PictureSample {
        let here = LocalRendering(configuration, threads: configuration.concurrency)
        var sample = try await closing({ await here.close() }) {
            try await measured(sources, here, arguments, configuration)
        }
        // Formats that cannot be stopped half way are rendered by children, whose work is known when they have ended.
        let children = usage(of: RUSAGE_CHILDREN)
        sample.processorTime += children.processorTime / Double(sample.renderings)
        sample.memory = max(sample.memory, children.memory)
        return sample
    }

    /// How many there were.
    var renderings = 1

    private static func measured(
        _ sources: [String], _ here: LocalRendering, _ arguments: ParsedCommand, _ configuration: Configuration
    ) async throws -> PictureSample {
        var pictures: [(fetched: LocalRendering.Fetched, variants: [Variant])] = []
        var sample = PictureSample(processorTime: 0, sourceSizes: [], resultBytes: 0)
        for source in sources {
            let local = try await SourceArgument.localFile(source)
            let prepared = try await SingleJob.prepare(source: local?.source ?? source, arguments, configuration)
            let variants = prepared.job.variants
            let fetched = try await here.fetch(local?.path, prepared.job.request, variants)
            // What is done once in a process is no cost of a job.
            let rendering = try await here.render(fetched, variants)
            sample.sourceSizes.append(Double(fetched.source.body.count))
            sample.resultBytes += Double(rendering.images.reduce(0) { $0 + $1.body.count }) / Double(sources.count)
            sample.outputs = variants.count
            pictures.append((fetched, variants))
        }
        sample.pictures = pictures.count
        let (clock, before) = (ContinuousClock(), usage(of: RUSAGE_SELF).processorTime)
        let end = clock.now + time
        let rounds = try await withThrowingTaskGroup(of: Int.self) { [pictures] group in
            for _ in 0..<configuration.concurrency {
                group.addTask {
                    var rounds = 0
                    while rounds < Self.rounds || clock.now < end {
                        for picture in pictures { _ = try await here.render(picture.fetched, picture.variants) }
                        rounds += 1
                    }
                    return rounds
                }
            }
            return try await group.reduce(0, +)
        }
        let count = rounds * pictures.count
        sample.processorTime = (usage(of: RUSAGE_SELF).processorTime - before) / Double(count)
        sample.renderings = count + pictures.count
        sample.memory = Double(VipsLibrary.highestBytes)
        return sample
    }

    /// Seconds of processors, and bytes of memory at most (getrusage(2)).
    private static func usage(of whom: __rusage_who) -> (processorTime: Double, memory: Double) {
        var usage = rusage()
        getrusage(whom.rawValue, &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return (seconds(usage.ru_utime) + seconds(usage.ru_stime), Double(usage.ru_maxrss) * 1024)
    }
}
