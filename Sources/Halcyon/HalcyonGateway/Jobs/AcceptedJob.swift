import HalcyonWire
import JSON

/// What the submitter of a job is told of it.
struct AcceptedJob: JSONWritable {
    private let prepared: PreparedJob

    init(_ prepared: PreparedJob) { self.prepared = prepared }

    /// Where its state is asked for.
    var location: String { "/v1/jobs/\(prepared.job.id.percentEncoded)" }

    func write(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

    /// Its members: what it is called, which lane it goes down, and where its images will be.
    func writeMembers(to writer: inout JSONWriter) {
        writer.member("id", prepared.job.id)
        writer.member("lane", prepared.lane.rawValue)
        writer.member("status", location)
        writer.name("images")
        writer.array { writer in
            for key in prepared.keys { writer.value("/v1/images/\(key.description.percentEncoded)") }
        }
        if !prepared.unknownFields.isEmpty {
            writer.name("unknownFields")
            writer.array { writer in
                for name in prepared.unknownFields { writer.value(name) }
            }
        }
    }
}

extension String {
    /// For one segment of a path: all but unreserved characters (RFC 3986, 2.3) and colons, which may stand there as they are.
    var percentEncoded: String {
        var text = ""
        for byte in utf8 {
            switch byte {
            case 0x30...0x3a, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e:
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                text += (byte < 16 ? "%0" : "%") + digits
            }
        }
        return text
    }
}
