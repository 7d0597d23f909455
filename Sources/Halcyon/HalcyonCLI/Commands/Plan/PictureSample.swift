import Concurrency
import Glibc
import HalcyonCoding
import HalcyonModel
import ProgramSettings
import Vips

/// The mean costs of jobs over a sample of images.
struct PictureSample {
    /// The processor time in seconds to render one source into all its results.
    var processorTime: Double
    /// The size of each source in bytes.
    var sourceSizes: [Double]
    /// The mean total size of the results of a job in bytes.
    var resultBytes: Double
    /// The peak memory of a rendering in bytes.
    var memory = 64e6
    /// The number of results of a job.
    var outputs = 1
    /// The number of images in the sample.
    var pictures = 0

    /// The minimum time of the measurement, and the minimum number of renderings of each image.
    private static let (time, rounds) = (Duration.seconds(2), 3)

    /// Renders each source repeatedly on all processors of a worker at once, as a busy worker does. Processors that
    /// share a core are slower when both are in use.
    /// - Throws: ``JobError``, ``FileError``, ``InputError``, `CancellationError`.
    static func measured(
        _ sources: [String], _ arguments: ParsedCommand, _ configuration: Configuration
    ) async throws -> PictureSample {
        let here = LocalRendering(configuration, threads: configuration.concurrency)
        var sample = try await closing({ await here.close() }) {
            try await measured(sources, here, arguments, configuration)
        }
        // Formats that cannot be interrupted are rendered in child processes. Their usage is known after they exit.
        let children = usage(of: RUSAGE_CHILDREN)
        sample.processorTime += children.processorTime / Double(sample.renderings)
        sample.memory = max(sample.memory, children.memory)
        return sample
    }

    /// The number of renderings.
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
            // Warm up. One-time work of the process is not a cost of jobs.
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

    /// The processor time in seconds and the peak memory in bytes (getrusage(2)).
    private static func usage(of whom: __rusage_who) -> (processorTime: Double, memory: Double) {
        var usage = rusage()
        getrusage(whom.rawValue, &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return (seconds(usage.ru_utime) + seconds(usage.ru_stime), Double(usage.ru_maxrss) * 1024)
    }
}

/// Measures the speed of this machine with a fixed task: decoding a job and deriving its key.
enum PaceMeasurement {
    private static let job = Array(
        """
        {"id":"article-17-hero",\
        "source":"https://images.example.org/articles/2026/11/21/a-cat-asleep-4000x3000.jpg?version=7",\
        "width":400,"height":300,"screenScale":2,"contentMode":"scaleAspectFit",\
        "cropRect":{"x":0.125,"y":0,"width":0.75,"height":1},"format":"webp","quality":80,"maxAge":3600,\
        "metadata":{"article":17,"slot":"hero","author":{"name":"A. Writer"}},\
        "altText":"A cat asleep"}
        """.utf8)

    /// Measures ``Reference/unit`` on this machine while the given number of processors runs the same task.
    static func unit(processors: Int) async throws -> Double {
        try await withThrowingTaskGroup(of: Double.self) { group in
            for _ in 0..<processors { group.addTask { try await blocking { try unit() } } }
            return try await group.reduce(0, +) / Double(processors)
        }
    }

    /// Returns the minimum of many rounds, because interference can only slow a machine down.
    private static func unit() throws -> Double {
        let reader = JobDecoder()
        var (least, length) = (Double.infinity, 0)
        for _ in 0..<20 {
            let start = processorTime()
            for _ in 0..<500 {
                let job = try reader.read(job, defaultID: "0").job
                length += ResultKey(job.request, variant: job.variants[0]).description.utf8.count
            }
            least = min(least, (processorTime() - start) / 500)
        }
        precondition(length > 0, "keys are not empty")
        return least
    }

    private static func processorTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
