import HalcyonWire
import JSON
import PercentCoding

/// What the submitter of a job is told of it.
struct AcceptedJob: JSONWritable {
    private let prepared: PreparedJob

    init(_ prepared: PreparedJob) { self.prepared = prepared }

    /// Where its state is asked for.
    var location: String { "/v1/jobs/\(PercentEncoding.encode(pathSegment: prepared.job.id))" }

    func write(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

    /// Its members: what it is called, which lane it goes down, and where its images will be.
    func writeMembers(to writer: inout JSONWriter) {
        writer.member("id", prepared.job.id)
        writer.member("lane", prepared.lane.rawValue)
        writer.member("status", location)
        writer.name("images")
        writer.array { writer in
            for key in prepared.keys {
                writer.value("/v1/images/\(PercentEncoding.encode(pathSegment: key.description))")
            }
        }
        if !prepared.unknownFields.isEmpty {
            writer.name("unknownFields")
            writer.array { writer in
                for name in prepared.unknownFields { writer.value(name) }
            }
        }
    }
}

extension PercentEncoding {
    /// Returns one segment of a path: colons may stand there as they are.
    static func encode(pathSegment text: String) -> String { encode(text, keeping: ":") }
}
