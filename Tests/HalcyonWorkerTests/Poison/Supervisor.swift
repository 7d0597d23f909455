import Concurrency
import Foundation
import HalcyonCluster
import Subprocess
import TestSupport

/// A worker with deadly extensions, as a process of its own, which is started again whenever it ends: as Kubernetes does with one of a
/// StatefulSet, whose name it keeps.
final class Supervisor: Sendable {
    private struct State {
        var child: ChildProcess?
        var exits: [ChildProcess.Exit] = []
        var isOver = false
    }

    private let options: ChildProcess.Options
    private let folder = TemporaryFolder("deadly")
    private let state = Lock(State())
    private let task = Lock<Task<Void, any Error>?>(nil)

    /// - Parameter settings: of the worker, by their variables without `HALCYON_`.
    init(_ cluster: WorkerTestCluster, _ settings: [String: String]) {
        var options = ChildProcess.Options()
        options.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("HALCYON_") }.merging([
            "HALCYON_KAFKA_BROKERS": cluster.broker.bootstrapServers,
            "HALCYON_KAFKA_PREFIX": cluster.topics.prefix, "HALCYON_KAFKA_GROUP": cluster.topics.prefix,
            "HALCYON_REDIS_URL": "redis://127.0.0.1:\(cluster.redis.port)", "HALCYON_SOURCES_ALLOW": "127.0.0.0/8",
            "HALCYON_KAFKA_PROPERTY_session.timeout.ms": "6000",
            "HALCYON_KAFKA_PROPERTY_fetch.wait.max.ms": "10", "HALCYON_LEASES_DURATION": "2s",
            "HALCYON_WORKER_CONCURRENCY": "2", "SWIFT_BACKTRACE": "enable=no",
            // Kafka knows it again, and does not wait for the session of the one that died to end.
            "HALCYON_WORKER_INSTANCE": "deadly", "HALCYON_WORKER_STATICMEMBER": "true",
        ]) { $1 }.merging(settings.map { ("HALCYON_\($0.key)", $0.value) }) { $1 }
        options.errors = .inherited
        self.options = options
    }

    /// Runs `body` beside a worker that is started again and again, on a stage of its own.
    static func with(
        _ settings: [String: String] = [:], _ body: @Sendable (WorkerTestCluster, Supervisor) async throws -> Void
    ) async throws {
        let topics = Topics(prefix: "deadly\(UInt32.random(in: 0 ... .max)).")
        try await WorkerTestCluster.with(broker: .apache, topics: topics) { cluster in
            let supervisor = Supervisor(cluster, settings)
            supervisor.start()
            let result: Result<Void, any Error>
            do { result = .success(try await body(cluster, supervisor)) } catch { result = .failure(error) }
            await supervisor.stop()
            try result.get()
        }
    }

    private func start() {
        let log = "\(folder.path)/log"
        let started = Task { [state, options] in
            while !state.withLock({ $0.isOver }) {
                // The shell, for a log that is added to; it becomes the program.
                let child = try await ChildProcess.start(
                    "/bin/sh",
                    ["-c", #"exec "$1" worker 2>>"$2""#, "sh", BuiltExecutable.path("CrashingExtensionHost"), log],
                    options: options)
                if state.withLock({ state in
                    state.child = child
                    return state.isOver
                }) {
                    child.send(SIGKILL)
                }
                let exit = await child.exit()
                state.withLock { state in
                    state.child = nil
                    state.exits.append(exit)
                }
            }
        }
        task.withLock { $0 = started }
    }

    /// How its processes have ended so far.
    var exits: [ChildProcess.Exit] { state.withLock { $0.exits } }

    /// Sends a signal to the present one.
    func send(_ signal: Int32) { state.withLock { $0.child }?.send(signal) }

    /// From now on none is started.
    func startNoMore() { state.withLock { $0.isOver = true } }

    private func stop() async {
        startNoMore()
        send(SIGKILL)
        try? await task.withLock { $0 }?.value
        await folder.remove()
    }

    /// What all of them have logged.
    var log: String { String(decoding: folder.read("log"), as: UTF8.self) }

    /// The path of the file in which the extensions note that they were called.
    var notesPath: String { "\(folder.path)/notes" }

    /// Where the extensions were called, in order.
    var notes: [String] {
        String(decoding: folder.read("notes"), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Parameters of the extensions.
    func deadly(_ how: String, _ more: String = "") -> String {
        #"{"deadly":{"how":"\#(how)","notes":"\#(notesPath)"\#(more)}}"#
    }

    /// A picture that only libvips' own loaders touch, and that may be rendered in the worker.
    func job(_ id: String, _ processor: String, _ more: String = "") throws -> String {
        let bytes = try SampleImages.bytes().base64
        return
            #"{"id":"\#(id)","source":{"base64":"\#(bytes)","cacheKey":"rocket"},"width":40,"height":30,"processors":[\#(processor)]\#(more)}"#
    }
}

extension [UInt8] {
    fileprivate var base64: String { Data(self).base64EncodedString() }
}
