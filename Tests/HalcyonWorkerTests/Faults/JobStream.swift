import Concurrency
import Foundation
import HalcyonCluster
import Kafka
import TestSupport

/// A steady stream of jobs: several sizes of each source, and each size requested by jobs in three distant partitions.
final class JobStream: Sendable {
    /// The sizes of each source. The last one is slow.
    private static let sizes = [
        #""width":200,"height":150"#, #""width":240,"height":180"#,
        #""width":700,"height":500,"format":"avif","effort":3"#,
    ]
    /// The number of jobs for each size of a source.
    private static let copies = 3
    static let partitions = 9
    /// The maximum number of jobs that have not ended.
    private static let maximumInFlight = 72

    private struct State {
        var submitted = 0
        var sources = 0
        /// The ids of terminal events, by job.
        var terminalEventIDs: [String: [String]] = [:]
        var failed: [String] = []
        /// The number of events that have been read.
        var read = 0
    }

    private let producer: Producer
    private let topics: Topics
    private let events: EventLog
    private let origin: RawOrigin
    private let state = Lock(State())

    init(_ producer: Producer, _ topics: Topics, _ events: EventLog, _ origin: RawOrigin) {
        self.producer = producer
        self.topics = topics
        self.events = events
        self.origin = origin
    }

    /// Returns an origin that takes 300 ms and serves another image on each request for a source.
    static func origin() throws -> RawOrigin {
        let pictures = try ["rocket.jpg", "chelsea.jpg", "coffee.jpg", "astronaut.jpg"].map {
            try SampleImages.bytes($0)
        }
        let counts = Lock<[String: Int]>([:])
        return RawOrigin { request in
            let count = counts.withLock { counts in
                counts[request.path, default: 0] += 1
                return counts[request.path]!
            }
            return [.pause(.milliseconds(300))]
                + RawOrigin.Step.response(pictures[count % pictures.count], ["Cache-Control: max-age=3600"])
        }
    }

    /// Submits jobs until the task is cancelled.
    func run() async throws {
        while !Task.isCancelled {
            readEvents()
            let (source, isFull) = state.withLock { state in
                let isFull = state.submitted - state.terminalEventIDs.count >= Self.maximumInFlight
                if !isFull { state.sources += 1 }
                return (state.sources, isFull)
            }
            if isFull {
                try? await Task.sleep(for: .milliseconds(50))
            } else {
                try await submit(source)
            }
        }
    }

    private func submit(_ source: Int) async throws {
        for copy in 0..<Self.copies {
            for (number, size) in Self.sizes.enumerated() {
                let id = "\(source)-\(number)-\(copy)"
                let job = #"{"id":"\#(id)","source":"\#(origin.url("/\(source).jpg"))",\#(size)}"#
                try await producer.send(
                    ProducerRecord(
                        topic: topics.jobs(.normal), partition: Int32(copy * 3 + (source + number) % 3),
                        value: Array(job.utf8)))
                state.withLock { $0.submitted += 1 }
            }
        }
    }

    private func readEvents() {
        let all = events.all
        state.withLock { state in
            for event in all.dropFirst(state.read) where event.isTerminal {
                state.terminalEventIDs[event.jobID, default: []].append(event.json["id"] as? String ?? "")
                if event.kind != "ready" { state.failed.append("\(event.jobID): \(event.message)") }
            }
            state.read = all.count
        }
    }

    /// Waits until all submitted jobs have ended, and for duplicates to arrive.
    func waitUntilSettled() async throws {
        try await until("all jobs have ended", within: .seconds(180)) {
            self.readEvents()
            return self.state.withLock { $0.terminalEventIDs.count >= $0.submitted }
        }
        try await Task.sleep(for: .seconds(1))
        readEvents()
    }

    var submitted: Int { state.withLock { $0.submitted } }
    var sources: Int { state.withLock { $0.sources } }
    /// True if all jobs for the first sources have ended.
    func hasCompleted(sources count: Int) -> Bool {
        let ended = terminalEventIDs.keys
        return (1..<count + 1).allSatisfy { source in
            Self.sizes.indices.allSatisfy { number in
                (0..<Self.copies).allSatisfy { ended.contains("\(source)-\(number)-\($0)") }
            }
        }
    }
    /// The ids of the terminal events of each job.
    var terminalEventIDs: [String: [String]] { state.withLock { $0.terminalEventIDs } }
    var failed: [String] { state.withLock { $0.failed } }
}
