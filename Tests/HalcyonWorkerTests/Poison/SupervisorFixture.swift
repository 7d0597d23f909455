import Concurrency
import Foundation
import HalcyonCluster
import Kafka
import Subprocess
import TestSupport

/// A worker process with crashing extensions, which is restarted whenever it exits and keeps its name, like a pod of a
/// Kubernetes StatefulSet.
final class SupervisorFixture: Sendable {
    private struct State {
        var child: ChildProcess?
        var exits: [ChildProcess.Exit] = []
        var isOver = false
    }

    private let options: ChildProcess.Options
    private let folder = TemporaryFolder("crashing")
    private let state = Lock(State())
    private let task = Lock<Task<Void, any Error>?>(nil)

    /// - Parameter settings: Settings of the worker, by environment variable without `HALCYON_`.
    init(_ cluster: WorkerFixture, _ settings: [String: String]) {
        var options = ChildProcess.Options()
        options.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("HALCYON_") }.merging([
            "HALCYON_KAFKA_BROKERS": cluster.broker.bootstrapServers,
            "HALCYON_KAFKA_PREFIX": cluster.topics.prefix, "HALCYON_KAFKA_GROUP": cluster.topics.prefix,
            "HALCYON_REDIS_URL": cluster.redis.url, "HALCYON_SOURCES_ALLOW": "127.0.0.0/8",
            "HALCYON_KAFKA_PROPERTY_session.timeout.ms": "6000", "HALCYON_LEASES_DURATION": "2s",
            "HALCYON_WORKER_CONCURRENCY": "2", "SWIFT_BACKTRACE": "enable=no",
            // A static member: the group does not wait for the session of the crashed process to end.
            "HALCYON_WORKER_INSTANCE": "crashing", "HALCYON_WORKER_STATICMEMBER": "true",
        ]) { $1 }
        .merging(MockCluster.fetchEnvironment) { $1 }
        .merging(settings.map { ("HALCYON_\($0.key)", $0.value) }) { $1 }
        options.errors = .inherited
        self.options = options
    }

    /// Runs `body` beside a worker that is restarted whenever it exits, in a cluster of its own.
    static func with(
        _ settings: [String: String] = [:], _ body: @Sendable (WorkerFixture, SupervisorFixture) async throws -> Void
    ) async throws {
        let topics = Topics(prefix: "crashing\(UInt32.random(in: 0 ... .max)).")
        try await WorkerFixture.with(broker: .apache, topics: topics) { cluster in
            let supervisor = SupervisorFixture(cluster, settings)
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
                // The shell appends standard error to the log and then executes the program.
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

    /// The exits of its processes so far.
    var exits: [ChildProcess.Exit] { state.withLock { $0.exits } }

    /// Sends a signal to the current process.
    func send(_ signal: Int32) { state.withLock { $0.child }?.send(signal) }

    /// Stops restarting the worker.
    func stopRestarting() { state.withLock { $0.isOver = true } }

    private func stop() async {
        stopRestarting()
        send(SIGKILL)
        try? await task.withLock { $0 }?.value
        await folder.remove()
    }

    /// The log of all its processes.
    var log: String { String(decoding: folder.read("log"), as: UTF8.self) }

    /// The path of the file to which the extensions append a line for each call.
    var callLogPath: String { "\(folder.path)/calls" }

    /// The kinds of the processes in which the extensions were called, in order: `worker` or `child`.
    var calls: [String] {
        String(decoding: folder.read("calls"), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Returns a processor or source of the crashing extensions, as JSON.
    func crashing(_ mode: String, _ more: String = "") -> String {
        #"{"crashing":{"mode":"\#(mode)","callLog":"\#(callLogPath)"\#(more)}}"#
    }

    /// Returns a job whose image needs only libvips' own loaders and may be rendered in the worker.
    func job(_ id: String, _ processor: String, _ more: String = "") throws -> String {
        let bytes = try SampleImages.bytes().base64
        return
            #"{"id":"\#(id)","source":{"base64":"\#(bytes)","cacheKey":"rocket"},"width":40,"height":30,"processors":[\#(processor)]\#(more)}"#
    }
}

extension [UInt8] {
    fileprivate var base64: String { Data(self).base64EncodedString() }
}
