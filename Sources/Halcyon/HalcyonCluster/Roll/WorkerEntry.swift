import CivilTime
import JSON

/// What a worker says of itself. Nothing of it is secret: who may follow events may see it.
public struct WorkerEntry: JSONWritable, Hashable, Sendable {
    /// Its own among all workers: a restarted one has another.
    public var id: String
    /// The name of its machine.
    public var host: String
    /// Its process there.
    public var pid: Int32
    /// Which Halcyon it is.
    public var version: String
    /// When it started, in milliseconds since 1970.
    public var since: Int64
    /// Images that it renders at once.
    public var threads: Int
    /// Jobs under way, by lane; those that came back through a topic of retries are under `retry`.
    public var jobs: [String: Int]

    /// Takes the values as they are.
    public init(
        id: String, host: String, pid: Int32, version: String, since: Int64, threads: Int, jobs: [String: Int] = [:]
    ) {
        self.id = id
        self.host = host
        self.pid = pid
        self.version = version
        self.since = since
        self.threads = threads
        self.jobs = jobs
    }

    /// As one JSON object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("id", id)
            writer.member("host", host)
            writer.member("pid", Int64(pid))
            writer.member("version", version)
            writer.member("since", Timestamp(milliseconds: since).rfc3339)
            writer.member("threads", Int64(threads))
            writer.name("jobs")
            writer.object { writer in
                for (lane, count) in jobs.sorted(by: { $0.key < $1.key }) { writer.member(lane, Int64(count)) }
            }
        }
    }
}
