import Glibc
import HalcyonModel
import HalcyonPlan
import HalcyonWire
import Threads

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
