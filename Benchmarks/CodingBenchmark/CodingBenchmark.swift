import Glibc
import HalcyonCoding
import HalcyonModel

/// What the words around a job cost: `CodingBenchmark [ROUNDS]`.
///
/// Prints for a job of 520 bytes the CPU time of reading it, of computing its key, of writing its ready event, and of the three
/// together: the median of the rounds, each of 2,000 jobs.
@main struct CodingBenchmark {
    static let job = Array(
        """
        {"id":"article-17-hero-2026-11-21T10:31:07Z-4f9c2b1e","source":"https://images.example.org/articles/2026/11/21/\
        a-cat-asleep-on-a-keyboard-4000x3000.jpg?version=7","width":400,"height":300,"screenScale":2,\
        "contentMode":"scaleAspectFit","scaleOptions":"fitCropsExcess","cropRect":{"x":0.125,"y":0,"width":0.75,"height":1},\
        "format":"webp","quality":80,"maxAge":3600,"deadline":30,"metadata":{"article":17,"slot":"hero","locale":"en-GB",\
        "author":{"name":"A. Writer","id":90210}},"altText":"A ginger cat asleep on a keyboard"}
        """.utf8)

    static func main() throws {
        guard let rounds = CommandLine.arguments.count > 1 ? Int(CommandLine.arguments[1]) : 201, rounds > 0 else {
            print("usage: CodingBenchmark [ROUNDS]")
            exit(2)
        }
        let reader = JobDecoder(isStrict: true)
        let read = try reader.read(job, defaultID: "0").job
        let key = ResultKey(read.request, variant: read.variants[0]).description
        let event = ready(read, key)
        var (reading, keying, writing, all) = ([Double](), [Double](), [Double](), [Double]())
        for _ in 0..<rounds {
            reading.append(try cost { try reader.read(job, defaultID: "0").job.id.utf8.count })
            keying.append(cost { ResultKey(read.request, variant: read.variants[0]).description.utf8.count })
            writing.append(cost { event.json.count })
            all.append(
                try cost {
                    let job = try reader.read(job, defaultID: "0").job
                    return ready(job, ResultKey(job.request, variant: job.variants[0]).description).json.count
                })
        }
        print(
            "a job of \(job.count) bytes, an event of \(event.json.count) bytes, median of \(rounds) rounds, CPU time:")
        for (name, costs) in [("read", reading), ("key", keying), ("write", writing), ("all", all)] {
            let median = (costs.sorted()[rounds / 2] * 100).rounded() / 100
            print("  \(name)\t\(median) µs")
        }
    }

    static let result = ResultMetadata(
        width: 800, height: 600, format: .webp, bytes: 23_481, sha256: String(repeating: "9f86d081", count: 8),
        source: SourceMetadata(
            status: 200, etag: "\"5f3c-61e\"", bytes: 1_482_113, format: .jpeg, width: 4000, height: 3000))

    /// The event of a cached hit.
    static func ready(_ job: Job, _ key: String) -> Event {
        var timings = Timings()
        timings[.queued] = 4.1
        timings[.total] = 0.375
        return Event(
            id: "halcyon.jobs-3-1042-ready", time: 1_795_257_067.395, subject: job.source.text, jobID: job.id,
            echo: job.echo, traceparent: nil,
            body: .ready(
                Ready(
                    results: [ImageResult(key: key, facts: result, expiresAt: 1_795_260_667.39)], origin: .memory,
                    timings: timings)))
    }

    /// CPU time of one call in µs, from 2,000.
    static func cost(of calls: Int = 2000, _ call: () throws -> Int) rethrows -> Double {
        var bytes = 0
        let start = now()
        for _ in 0..<calls { bytes += try call() }
        let end = now()
        precondition(bytes > 0)
        return Double(end - start) / Double(calls) / 1000
    }

    private static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
