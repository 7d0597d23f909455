import Concurrency
import Formats
import Glibc
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import ProgramSettings
import Redis

/// `halcyon top`: shows the state of the cluster.
enum TopCommand: Subcommand {
    private static let interval = Parameter<Duration>.option(
        "interval", .duration(in: .milliseconds(100) ... .seconds(3600)), as: "DURATION", default: .seconds(1),
        help: "The time between two readings. Default: 1s.")
    private static let once = Parameter.flag(
        "once", help: "Print one snapshot as text and exit. Exits with code 1 if a part is unavailable.")
    private static let json = Parameter.flag(
        "json", help: "Print one JSON object for each reading. Members that are unavailable are omitted.")

    static let command = Command(
        "top", summary: "Show the lanes, tenants, batches, workers and failures of the cluster, live.",
        discussion: """
            The view is redrawn in place until Ctrl-C. If standard output is no terminal, one snapshot is printed, \
            like with --once.

            LANES: the messages that wait in each lane and in the retry, delay and overflow topics (the lag of the \
            workers' group), and the messages per second that left a lane during the last \(EndedJobs.averaged) \
            seconds. TENANTS: the jobs in flight of the busiest tenants; each worker reports its \
            \(WorkerInfo.mostTenants) busiest. Paused lanes and tenants are marked. BATCHES: those of the newest \
            \(ClusterMonitor.mostBatches) that are not completed. WORKERS: the jobs that each has in flight, and \
            its rendering threads. FAILURES: the jobs that failed within the last \(EndedJobs.window / 60) minutes, \
            by code, from the newest \(ClusterMonitor.mostEvents) events.

            Lanes and failures come from Kafka, the others from Redis. If one of them does not answer, its parts are \
            `unavailable` and the others go on. Sections that do not fit the window are shortened.
            """, parameters: [interval, once, json],
        examples: [
            .init("halcyon top", "Watch the cluster."),
            .init("halcyon top --once", "Print the state of the cluster."),
            .init("halcyon top --once --json | jq '.lanes[] | {lane, lag}'", "Print the lag of each lane."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let monitor = try ClusterMonitor(Configuration(arguments))
        let interval = arguments[interval]
        return try await closing({ await monitor.close() }) {
            await monitor.start()
            if arguments[once] || !(arguments[json] || Console.outputIsTerminal) {
                return await printOnce(monitor, after: interval, asJSON: arguments[json])
            }
            if arguments[json] {
                await printJSON(monitor, every: interval)
            } else {
                await draw(monitor, every: interval)
            }
            return .done
        }
    }

    /// Prints one snapshot. The rates of the lanes are those of an interval.
    private static func printOnce(_ monitor: ClusterMonitor, after interval: Duration, asJSON: Bool) async -> ExitCode {
        _ = await monitor.snapshot()
        await monitor.waitForEvents()
        await Task.sleepUnlessCancelled(for: interval)
        if Task.isCancelled { return .interrupted }
        let snapshot = await monitor.snapshot()
        if asJSON {
            Console.print(json: snapshot.json)
        } else {
            Console.print(snapshot.lines().map(\.text).joined(separator: "\n"))
        }
        return snapshot.isComplete ? .done : .failed
    }

    private static func printJSON(_ monitor: ClusterMonitor, every interval: Duration) async {
        await monitor.waitForEvents()
        while !Task.isCancelled {
            guard Console.print(json: await monitor.snapshot().json) else { return }
            await Task.sleepUnlessCancelled(for: interval)
        }
    }

    private static func draw(_ monitor: ClusterMonitor, every interval: Duration) async {
        let screen = AlternateScreen()
        screen.open()
        // The screen is restored at once, also if a server delays the end of the command.
        await withTaskCancellationHandler {
            screen.draw { _ in [.init(text: "reading the state of the cluster …")] }
            while !Task.isCancelled {
                let snapshot = await monitor.snapshot()
                screen.draw { snapshot.lines(columns: $0.columns, rows: $0.rows) }
                await Task.sleepUnlessCancelled(for: interval)
            }
        } onCancel: {
            screen.close()
        }
        screen.close()
    }
}

extension ClusterSnapshot {
    fileprivate var json: [UInt8] {
        var writer = JSONWriter(capacity: 2048)
        writer.value(self)
        return writer.bytes
    }
}

/// The alternate screen of the terminal at standard output (the mode 1049 of xterm). The former content returns when it
/// is closed.
final class AlternateScreen: Sendable {
    private let isOpen = Lock(false)

    /// Switches to the alternate screen, and hides the cursor.
    func open() {
        isOpen.withLock { isOpen in
            isOpen = true
            write("\u{1b}[?1049h\u{1b}[?25l")
        }
    }

    /// Replaces the content. Has no effect after ``close()``.
    /// - Parameter lines: returns the lines for the size of the window.
    func draw(_ lines: ((columns: Int, rows: Int?)) -> [ClusterSnapshot.Line]) {
        let size = terminalSize(of: STDOUT_FILENO) ?? (80, 24)
        let text = lines(size).map { line in line.isTitle ? "\u{1b}[1m\(line.text)\u{1b}[0m" : line.text }
            // Erase the rest of each line, and the lines below.
            .joined(separator: "\u{1b}[K\r\n")
        isOpen.withLock { if $0 { write("\u{1b}[H\(text)\u{1b}[K\u{1b}[J") } }
    }

    /// Restores the terminal. A second call has no effect.
    func close() {
        isOpen.withLock { isOpen in
            if isOpen { write("\u{1b}[?25h\u{1b}[?1049l") }
            isOpen = false
        }
    }

    private func write(_ text: String) { Console.write(Array(text.utf8), to: STDOUT_FILENO) }
}

/// Reads the state of a cluster from Kafka and Redis. Call ``close()`` at the end.
actor ClusterMonitor {
    /// The number of batches that are looked at.
    static let mostBatches = 200
    /// The maximum number of past events that are read at the start.
    static let mostEvents: Int64 = 20_000

    /// The timeout of each request to Kafka, and of all requests to Redis for one part.
    private static let timeout = Duration.seconds(2)

    private let topics: Topics
    private let group: String
    private let reader: [String: String]
    private let admin: Admin
    private let redis: RedisClient
    private let batches: BatchStore
    private var rates = LaneRates()
    /// The jobs that ended lately; nil while the events cannot be read.
    private let ended = Lock<EndedJobs?>(nil)
    /// Signaled when the past events have been read.
    private let caughtUp = AsyncEvent()
    private var following: Task<Void, Never>?

    /// - Throws: `KafkaError` for a rejected property; ``ConfigurationError``.
    init(_ configuration: Configuration) throws {
        topics = configuration.topics
        group = configuration.options.worker.group
        reader = configuration.kafka.reader
        let endpoint = try configuration.redis()
        admin = try Admin(properties: configuration.kafka.admin)
        redis = RedisClient(endpoint)
        batches = BatchStore(redis, configuration.options.worker.batches)
    }

    /// Starts to read events.
    func start() {
        following = following ?? Task { await follow() }
    }

    /// Waits until the past events have been read, but at most five seconds.
    func waitForEvents() async {
        await withTimeout(.seconds(5)) { [caughtUp] in await caughtUp.wait() }
    }

    /// Ends the connections.
    func close() async {
        following?.cancel()
        await withTimeout(.seconds(1)) { [following] in await following?.value }
        await admin.close()
        await redis.close()
    }

    /// Reads the current state. Takes longer than usual while a server does not respond.
    func snapshot() async -> ClusterSnapshot {
        let (redis, batches, topics) = (redis, batches, topics)
        async let workers = stored { try await WorkerRegistry(redis).entries().compactMap { WorkerInfo(json: $0) } }
        async let running = stored { try await batches.newest(Self.mostBatches).filter { $0.completed == nil } }
        async let pauses = stored { try await PauseStore(redis, topics: topics).pauses() }
        let kafka = await lag()
        var snapshot = ClusterSnapshot(time: Timestamp.now.milliseconds)
        if let lag = kafka.lag {
            snapshot.waiting = WaitingJobs(lag, topics)
            let positions = Lane.allCases.map { ($0, lag.position(in: topics.jobs($0))) }
            snapshot.rates = rates.add(Dictionary(uniqueKeysWithValues: positions), at: .now)
        }
        if kafka.isReachable { snapshot.ended = ended.withLock { $0?.summary(now: snapshot.time) } }
        (snapshot.workers, snapshot.batches, snapshot.pauses) = await (workers, running, pauses)
        return snapshot
    }

    private func lag() async -> (isReachable: Bool, lag: GroupLag?) {
        do throws(KafkaError) {
            let metadata = try await admin.metadata(within: Self.timeout)
            // Without the topics of the lanes, there is no cluster.
            guard topics.lanes.allSatisfy({ metadata.topics[$0] != nil }) else { return (true, nil) }
            do throws(KafkaError) {
                return (
                    true, try await GroupLag.of(group, in: topics.taken, by: admin, metadata, within: Self.timeout)
                )
            } catch {
                // The group has no coordinator at the moment.
                return (true, nil)
            }
        } catch {
            return (false, nil)
        }
    }

    /// Returns a value from Redis; nil if it is not available in time.
    private nonisolated func stored<Value: Sendable>(
        _ read: @escaping @Sendable () async throws -> Value
    ) async -> Value? {
        let value = Lock<Value?>(nil)
        await withTimeout(Self.timeout) {
            // The view says that the part is unavailable.
            if let read = try? await read() { value.withLock { $0 = read } }
        }
        return value.withLock { $0 }
    }

    // MARK: Events

    /// Counts the events until the task is cancelled. After an error it begins again.
    private nonisolated func follow() async {
        while !Task.isCancelled {
            do {
                let (reader, since) = try await open()
                ended.withLock { $0 = EndedJobs(since: since) }
                // `close` must run after an error, too.
                _ = try await closing({ await reader.close() }) { try await count(reader) }
            } catch {
                ended.withLock { $0 = nil }
            }
            await Task.sleepUnlessCancelled(for: .seconds(1))
        }
    }

    private nonisolated func open() async throws -> (TopicReader, since: Int64?) {
        let oldest = Timestamp.now.milliseconds - Int64(EndedJobs.window) * 1000
        func begin(from start: TopicReader.Start) async throws -> TopicReader {
            try await TopicReader.open(
                topics.events, from: start, properties: reader, tellsEnds: true, within: Self.timeout)
        }
        let whole = try await begin(from: .timestamp(oldest))
        let past = whole.endOffsets.reduce(0) { $0 + max(0, $1.value - (whole.startOffsets[$1.key] ?? $1.value)) }
        if past <= Self.mostEvents { return (whole, oldest) }
        let share = Self.mostEvents / Int64(max(1, whole.endOffsets.count))
        let starts = whole.endOffsets.map { ($0.key, max(whole.startOffsets[$0.key] ?? 0, $0.value - share)) }
        await whole.close()
        return (try await begin(from: .offsets(Dictionary(uniqueKeysWithValues: starts))), nil)
    }

    private nonisolated func count(_ reader: TopicReader) async throws {
        var positions = reader.startOffsets
        while let batch = try await reader.nextBatch() {
            let now = Timestamp.now.milliseconds
            for record in batch.records {
                positions[record.partition] = record.offset + 1
                // Events of later versions, and those of batches, are not decoded.
                guard let json = record.value, let ending = DecodedEvent(json: json)?.ending else { continue }
                ended.withLock { $0?.add(ending, at: record.timestamp, now: now) }
            }
            positions.merge(batch.ends) { max($0, $1) }
            if !caughtUp.isSignaled, reader.endOffsets.allSatisfy({ positions[$0.key, default: 0] >= $0.value }) {
                caughtUp.signal()
            }
        }
    }
}
