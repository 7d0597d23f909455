import Glibc
import HalcyonModel
import HalcyonWire
import ProgramSettings
import Threads
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

/// How fast this machine does what is ever the same: reading a job and making its key.
enum PaceMeasurement {
    private static let job = Array(
        """
        {"id":"article-17-hero","source":"https://images.example.org/articles/2026/11/21/a-cat-asleep-4000x3000.jpg?version=7",\
        "width":400,"height":300,"screenScale":2,"contentMode":"scaleAspectFit","cropRect":{"x":0.125,"y":0,"width":0.75,"height":1},\
        "format":"webp","quality":80,"maxAge":3600,"metadata":{"article":17,"slot":"hero","author":{"name":"A. Writer"}},\
        "altText":"A cat asleep"}
        """.utf8)

    /// Seconds of a processor, as ``Reference/unit`` is, while as many processors as these do the same.
    static func unit(processors: Int) async throws -> Double {
        try await withThrowingTaskGroup(of: Double.self) { group in
            for _ in 0..<processors { group.addTask { try await blocking { try unit() } } }
            return try await group.reduce(0, +) / Double(processors)
        }
    }

    /// The least of many rounds, since nothing makes a machine faster than it is.
    private static func unit() throws -> Double {
        let reader = JobReader()
        var (least, length) = (Double.infinity, 0)
        for _ in 0..<20 {
            let start = processorTime()
            for _ in 0..<500 {
                let job = try reader.read(job, defaultID: "0").job
                length += ResultKey(job.request, variant: job.variants[0]).description.utf8.count
            }
            least = min(least, (processorTime() - start) / 500)
        }
        precondition(length > 0, "keys have letters")
        return least
    }

    private static func processorTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
