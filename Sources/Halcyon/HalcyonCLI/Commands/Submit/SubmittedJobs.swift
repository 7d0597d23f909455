import Concurrency
import HalcyonCoding
import HalcyonModel
import Kafka

/// The jobs of one submission and their outcomes.
final class SubmittedJobs: Sendable {
    /// The outcome of a job.
    enum Outcome: Sendable {
        /// The images are ready, and written to these files if that was requested. With an error code they show the
        /// fallback picture.
        case ready(
            [DecodedEvent.Output], failures: [DecodedEvent.VariantFailure], fallback: String?, milliseconds: Double?,
            files: [String]?)
        /// The job failed.
        case failed(code: String, message: String)
        /// The job was cancelled.
        case cancelled
        /// A job of this generation replaced it in its display slot.
        case superseded(by: Int)
        /// The images are ready but could not be written.
        case notWritten([DecodedEvent.Output], reason: String)
        /// The job could not be sent to Kafka.
        case notSent(KafkaError)
    }

    private struct State {
        var outcomes: [Outcome?]
        var sent: Set<Int> = []
        /// Jobs by topic, partition and offset.
        var places: [String: Int] = [:]
        var left: Int
        var failures = 0
        var hasBeenHeardOf = false
    }

    let jobs: [ValidatedJob]
    private let indices: [[UInt8]: Int]
    private let state: Lock<State>
    private let completion: AsyncStream<Void>
    private let finish: AsyncStream<Void>.Continuation

    init(_ jobs: [ValidatedJob]) {
        self.jobs = jobs
        indices = Dictionary(uniqueKeysWithValues: jobs.enumerated().map { (Array($1.job.id.utf8), $0) })
        state = Lock(State(outcomes: Array(repeating: nil, count: jobs.count), left: jobs.count))
        (completion, finish) = AsyncStream.makeStream()
    }

    /// Returns the unfinished job that an event with this key belongs to.
    func index(ofKey key: [UInt8]) -> Int? {
        guard let index = indices[key] else { return nil }
        return state.withLock { state in
            state.hasBeenHeardOf = true
            return state.outcomes[index] == nil ? index : nil
        }
    }

    /// Records that the brokers acknowledged a job at these coordinates.
    func sent(_ index: Int, to coordinates: String) {
        state.withLock { state in
            state.sent.insert(index)
            state.places[coordinates] = index
        }
    }

    /// Returns the unfinished job at these coordinates.
    func index(at coordinates: String) -> Int? {
        state.withLock { state in
            guard let index = state.places[coordinates] else { return nil }
            state.hasBeenHeardOf = true
            return state.outcomes[index] == nil ? index : nil
        }
    }

    /// True if the brokers have acknowledged the job. It then runs even if no client waits for it.
    func isSent(_ index: Int) -> Bool { state.withLock { $0.sent.contains(index) } }

    /// Records the outcome of a job. Only the first one counts, because a redelivered job can have several events.
    func end(_ index: Int, _ outcome: Outcome) {
        let isComplete = state.withLock { state in
            guard state.outcomes[index] == nil else { return false }
            state.outcomes[index] = outcome
            state.left -= 1
            if !outcome.isReady { state.failures += 1 }
            return state.left == 0
        }
        if isComplete { finish.finish() }
    }

    /// Waits until all jobs have ended or the task is cancelled.
    func completed() async { for await _ in completion {} }

    /// The outcomes in the order of submission, with nil for unfinished jobs.
    var outcomes: [Outcome?] { state.withLock { $0.outcomes } }

    /// The number of jobs that have ended, and the number of failures among them.
    var counts: (ended: Int, failures: Int) { state.withLock { (jobs.count - $0.left, $0.failures) } }

    /// True if any event of these jobs has been received.
    var hasBeenHeardOf: Bool { state.withLock { $0.hasBeenHeardOf } }
}

extension SubmittedJobs.Outcome {
    /// True if the images are ready and written where requested.
    var isReady: Bool { if case .ready = self { true } else { false } }
}

/// File names for images, derived from their sources and sizes.
enum FileNames {
    /// An image that needs a file name.
    struct Image: Sendable {
        let bytes: [UInt8]
        let width: Int
        let height: Int
        /// The format, or nil for one that this version does not know.
        let format: ImageFormat?
    }

    /// Returns a unique name for each image of one source, such as `cat-400x300.jpg`, and `cat-400x300-2.jpg` for the
    /// next image of the same size and format.
    static func names(of images: [Image], stem: String) -> [String] {
        var counts: [String: Int] = [:]
        return images.map { image in
            let (size, ending) = (
                "\(stem)-\(image.width)x\(image.height)", image.format.map { ".\($0.fileExtension)" } ?? ""
            )
            counts[size + ending, default: 0] += 1
            let count = counts[size + ending] ?? 1
            return count == 1 ? size + ending : "\(size)-\(count)\(ending)"
        }
    }

    /// Returns a unique stem for each source. `https://example.org/cat.jpg?v=2` and the file `pets/cat.jpg` give `cat`,
    /// the next source of that name gives `cat-2`, and `initials:JD` gives `initials_JD`.
    static func stems(of sources: [String]) -> [String] {
        var taken: Set<String> = []
        var numbers: [String: Int] = [:]
        return sources.map { source in
            let stem = stem(of: source)
            var candidate = stem
            while !taken.insert(candidate).inserted {
                numbers[stem, default: 1] += 1
                candidate = "\(stem)-\(numbers[stem] ?? 0)"
            }
            return candidate
        }
    }

    /// The last path component without its extension. Other characters than letters, digits, dots, hyphens and
    /// underscores are replaced.
    private static func stem(of source: String) -> String {
        let scheme = source.firstRange(of: "://")
        let rest = scheme.map { source[$0.upperBound...] } ?? source[...]
        let path = rest.prefix { scheme == nil || !"?#".contains($0) }.split(separator: "/")
        // The first component of a URL is the host.
        let name = path.dropFirst(scheme == nil ? 0 : 1).last ?? "image"
        let stem = name.lastIndex(of: ".").map { name[..<$0] } ?? name
        let clean = stem.utf8.prefix(80).map { byte in
            Unicode.Scalar(byte).properties.isAlphabetic && byte < 0x80 || "0123456789-_.".utf8.contains(byte)
                ? Character(Unicode.Scalar(byte)) : "_"
        }
        let visible = clean.drop { $0 == "." }
        return visible.isEmpty ? "image" : String(visible)
    }
}
