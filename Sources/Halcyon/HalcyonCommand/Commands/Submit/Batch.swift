import HalcyonModel
import HalcyonWire
import Kafka
import Threads

/// The jobs of one submission and what has become of each.
final class Batch: Sendable {
    /// What has become of a job.
    enum Outcome: Sendable {
        /// Its images are ready, and in these files if they were to be written.
        case ready([EventView.Output], failures: [EventView.VariantFailure], milliseconds: Double?, files: [String]?)
        /// It has failed.
        case failed(code: String, message: String)
        /// Somebody has cancelled it.
        case cancelled
        /// A job of this generation is for its slot.
        case superseded(by: Int)
        /// Its images are ready and could not be written.
        case notWritten([EventView.Output], reason: String)
        /// It did not get to Kafka.
        case notSent(KafkaError)
    }

    private struct State {
        var outcomes: [Outcome?]
        var sent: Set<Int> = []
        /// Jobs by the topic, partition and offset where they came to lie.
        var places: [String: Int] = [:]
        var left: Int
        var failures = 0
        var hasBeenHeardOf = false
    }

    let jobs: [PreparedJob]
    private let indices: [[UInt8]: Int]
    private let state: Lock<State>
    private let completion: AsyncStream<Void>
    private let finish: AsyncStream<Void>.Continuation

    init(_ jobs: [PreparedJob]) {
        self.jobs = jobs
        indices = Dictionary(uniqueKeysWithValues: jobs.enumerated().map { (Array($1.job.id.utf8), $0) })
        state = Lock(State(outcomes: Array(repeating: nil, count: jobs.count), left: jobs.count))
        (completion, finish) = AsyncStream.makeStream()
    }

    /// The job that an event of this key is about, while it has not ended.
    func index(ofKey key: [UInt8]) -> Int? {
        guard let index = indices[key] else { return nil }
        return state.withLock { state in
            state.hasBeenHeardOf = true
            return state.outcomes[index] == nil ? index : nil
        }
    }

    /// The brokers have a job, at these coordinates.
    func sent(_ index: Int, to coordinates: String) {
        state.withLock { state in
            state.sent.insert(index)
            state.places[coordinates] = index
        }
    }

    /// The job that lies there, while it has not ended.
    func index(at coordinates: String) -> Int? {
        state.withLock { state in
            guard let index = state.places[coordinates] else { return nil }
            state.hasBeenHeardOf = true
            return state.outcomes[index] == nil ? index : nil
        }
    }

    /// Whether the brokers have a job, so that it goes on whoever waits for it.
    func isSent(_ index: Int) -> Bool { state.withLock { $0.sent.contains(index) } }

    /// A job has ended. The first word counts: a job that is delivered twice may be told of twice.
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

    /// Waits until all have ended, or the task is cancelled.
    func completed() async { for await _ in completion {} }

    /// In the order of submission; nil for a job that has not ended.
    var outcomes: [Outcome?] { state.withLock { $0.outcomes } }

    /// How many have ended, and how many of them badly.
    var counts: (ended: Int, failures: Int) { state.withLock { (jobs.count - $0.left, $0.failures) } }

    /// Whether any event of these jobs has come.
    var hasBeenHeardOf: Bool { state.withLock { $0.hasBeenHeardOf } }
}

extension Batch.Outcome {
    /// Whether the image is where it should be.
    var isReady: Bool { if case .ready = self { true } else { false } }
}

/// Names of files for images, made of their sources and their sizes.
enum FileNames {
    /// A file that gets a name.
    struct Image: Sendable {
        let bytes: [UInt8]
        let width: Int
        let height: Int
        /// nil for one that this version does not know.
        let format: ImageFormat?
    }

    /// A name for each image of one source, no two alike: `cat-400x300.jpg`, and `cat-400x300-2.jpg` for the next of that
    /// size and format.
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

    /// A stem for each source, no two alike: `cat` for `https://example.org/cat.jpg?v=2` and the file `pets/cat.jpg`, and
    /// `cat-2` for the next of that name; `initials_JD` for `initials:JD`.
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

    /// The last part of the path without its ending, in letters, digits, dots, dashes and underscores.
    private static func stem(of source: String) -> String {
        let scheme = source.firstRange(of: "://")
        let rest = scheme.map { source[$0.upperBound...] } ?? source[...]
        let path = rest.prefix { scheme == nil || !"?#".contains($0) }.split(separator: "/")
        // Of a URL the first part is the host.
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
