import Glibc
import Hashing
import Measuring
import TestSupport
import Vips

/// What the result store costs a worker: `StoreBenchmark HALCYON PART`.
///
/// HALCYON is the executable, run as workers on Apache Kafka (KAFKA_HOME; the mock cluster without). Every worker has a redis-server of its
/// own. The parts are
///
///     costs FOLDER [ROUNDS [ROOT]]           CPU time and latency of jobs without a store, with a folder, a bucket in
///                                            memory, and S3
///     hang [JOBS]                            memory of a worker whose store never answers
///     tiers [COUNT [folder|s3 [ROOT]]]       random reads of COUNT results through a Redis that holds a part of them, and
///                                            a purge
///
/// Folders are created in ROOT (/tmp).
@main struct StoreBenchmark {
    static func main() async throws {
        let arguments = CommandLine.arguments
        func number(_ index: Int, _ usual: Int) -> Int? {
            guard arguments.count > index else { return usual }
            return Int(arguments[index]).flatMap { $0 > 0 ? $0 : nil }
        }
        func text(_ index: Int, _ usual: String) -> String { arguments.count > index ? arguments[index] : usual }
        VipsLibrary.start()
        switch arguments.count > 2 ? arguments[2] : "" {
        case "costs":
            guard arguments.count > 3, let rounds = number(4, 9) else { usage() }
            try await Costs.measure(arguments[1], try jpegs(in: arguments[3]), rounds: rounds, root: text(5, "/tmp"))
        case "hang":
            guard let jobs = number(3, 10_000) else { usage() }
            try await Hang.measure(arguments[1], jobs: jobs)
        case "tiers":
            let store = text(4, "folder")
            guard let count = number(3, 200_000), count >= 1000, ["folder", "s3"].contains(store) else { usage() }
            guard try await Tiers.measure(arguments[1], count: count, store, root: text(5, "/tmp")) else { exit(1) }
        default: usage()
        }
    }

    private static func usage() -> Never {
        say(
            "usage: StoreBenchmark HALCYON costs FOLDER [ROUNDS [ROOT]] | hang [JOBS] | tiers [COUNT [folder|s3 [ROOT]]]"
        )
        exit(2)
    }
}

/// A small picture with grain, which is part of jobs. Each number is another source to Halcyon.
struct SmallPicture: Sendable {
    private let base64: String

    /// - Parameter side: its pixels in both directions. The larger, the larger are its results.
    init(side: Int) throws {
        let grain = try Operation.call(
            "gaussnoise", ["width": .int(side), "height": .int(side), "mean": 128, "sigma": 40, "seed": 1]
        ).image()
        let grey = try Operation.call("cast", ["in": .image(grain), "format": "uchar"]).image()
        base64 = Base64.encode(try grey.encoded(as: .png))
    }

    /// The fields of a job with an image of this many pixels and other fields.
    func job(_ number: Int, width: Int, _ others: String = "") -> String {
        #""source":{"base64":"\#(base64)","cacheKey":"\#(number)"},"width":\#(width),"format":"png"\#(others)"#
    }
}
