import HTTPServer
import HalcyonCoding
import JSON

/// Submits jobs from a request body with one job per line (NDJSON). The response has one line per job, in the same
/// order.
///
/// A line that is not a valid job is answered with its problem, and the following lines are processed. If the connection
/// breaks, clients should set the ids of jobs and submit all of them again.
struct NDJSONJobImporter: Sendable {
    let submitter: JobSubmitter
    /// The maximum number of lines in a request.
    let most: Int

    /// - Throws: ``Problem``, `HTTPServer.BodyError`.
    func take(_ call: RequestContext) async throws -> HTTPServer.Response {
        let answers = try await NDJSONLines(longest: submitter.reader.maximumBytes, most: most).map(call) { line, _ in
            await answer(line, call)
        }
        return HTTPServer.Response(
            status: 200, headers: ["Content-Type": "application/x-ndjson", "Cache-Control": "no-store"],
            body: .stream(length: answers.reduce(0) { $0 + $1.count }) { writer in
                for answer in answers { try await writer.write(answer) }
            })
    }

    private func answer(_ line: LineBuffer.Line, _ call: RequestContext) async -> [UInt8] {
        var writer = JSONWriter(capacity: 256)
        do throws(Problem) {
            guard let bytes = line.bytes else {
                throw Problem(.tooLarge, "the job is larger than \(submitter.reader.maximumBytes) bytes")
            }
            let prepared = try await submitter.prepare(bytes)
            try await submitter.submit(prepared, for: call.caller, traceparent: call.traceparent)
            writer.object { writer in
                writer.member("line", Int64(line.number))
                AcceptedJob(prepared).writeMembers(to: &writer)
            }
        } catch {
            writer.object { writer in
                writer.member("line", Int64(line.number))
                writer.name("problem")
                writer.raw(error.json)
            }
        }
        return writer.bytes + [UInt8(ascii: "\n")]
    }
}
