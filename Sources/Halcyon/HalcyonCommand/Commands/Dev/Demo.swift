import Glibc
import HalcyonCluster
import HalcyonModel
import HalcyonWire
import PercentCoding
import Redis
import SamplePhotographs

/// What `halcyon dev --demo` shows: one photograph, placed and processed in several ways, and an avatar.
struct Demo: Sendable {
    /// Where the photograph is and the results go; an absolute path. Jobs may load files from there.
    let folder: String

    /// Makes the folder, with the photograph in it.
    /// - Throws: ``FileError``.
    init(in folder: String) async throws {
        try await Files.makeFolder(folder)
        try await Files.write(SamplePhotographs.chelsea, to: "\(folder)/chelsea.jpg")
        guard let path = realpath(folder, nil) else { throw FileError("cannot find \(folder)", errno) }
        defer { free(path) }
        self.folder = String(cString: path)
    }

    /// Submits the jobs, waits for them, prints a line for each image and writes them into the folder.
    func run(_ kafka: KafkaAccess, _ redis: RedisEndpoint, _ reader: JobReader, asJSON: Bool) async throws -> ExitCode {
        let jobs = try jobs(reader)
        let submission = Submission(batch: Batch(jobs), kafka: kafka, timeout: nil, asJSON: asJSON)
        return try await redis.withClient { client in
            try await submission.wait(
                writingTo: Gallery(folder: folder, results: ResultTier(client), stems: jobs.map(\.job.id)))
        }
    }

    private func jobs(_ reader: JobReader) throws -> [PreparedJob] {
        let photograph = #""source":"file://\#(PercentEncoding.encode("\(folder)/chelsea.jpg", keeping: "/"))""#
        let display = #""width":240,"height":180"#
        let fields = [
            ("fill", #"\#(photograph),\#(display)"#),
            ("fit", #"\#(photograph),\#(display),"contentMode":"scaleAspectFit","background":"white""#),
            ("stretch", #"\#(photograph),\#(display),"contentMode":"scaleToFill""#),
            ("center", #"\#(photograph),\#(display),"contentMode":"center""#),
            ("crop", #"\#(photograph),\#(display),"cropRect":{"x":0.25,"y":0.1,"width":0.5,"height":0.5}"#),
            ("round", #"\#(photograph),"width":180,"height":180,"processors":[{"roundCorner":{"widthFraction":0.5}}]"#),
            ("gray", #"\#(photograph),\#(display),"processors":["blackWhite"]"#),
            ("small", #"\#(photograph),"format":"webp","variants":[{"width":320},{"width":160},{"width":80}]"#),
            ("avatar", ##""source":{"initials":"HC","background":"#1d6b4f"},"width":180,"height":180,"format":"png""##),
        ]
        return try fields.map { id, fields in
            let draft = try JobDraft(json: Array(#"{"id":"\#(id)",\#(fields)}"#.utf8), maximumSize: reader.maximumBytes)
            return try PreparedJob(draft, fallbackID: id, by: reader)
        }
    }
}
