import HTTPServer
import HalcyonCoding
import JSON

/// Submits jobs from a request body with one job per line (NDJSON). The response has one line per job, in the same
/// order.
///
/// A line that is not a valid job is answered with its problem, and the following lines are processed. If the
/// connection breaks, clients should set the ids of jobs and submit all of them again.
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

/// Processes the lines of a request body (NDJSON), several at a time.
///
/// The body is read at the pace at which the lines are processed, so backpressure reaches the client. If the connection
/// breaks, the complete lines that were received are processed.
struct NDJSONLines: Sendable {
    /// The maximum length of a line in bytes.
    let longest: Int
    /// The maximum number of lines in a request.
    let most: Int

    /// Returns the results of all lines that are not blank, in their order.
    /// - Parameter transform: A function that processes a line. `index` counts the lines that are not blank, from 0.
    /// - Throws: ``Problem`` if there are too many lines, after those before were processed; `HTTPServer.BodyError`.
    func map<Result: Sendable>(
        _ call: RequestContext, _ transform: @escaping @Sendable (LineBuffer.Line, _ index: Int) async -> Result
    ) async throws -> [Result] {
        try await mapConcurrently(transform) { add in
            var lines = LineBuffer(longest: longest)
            var count = 0
            func take(_ line: LineBuffer.Line) async throws {
                if line.isBlank { return }
                if count == most {
                    throw Problem(.tooLarge, "more than \(most) jobs; the first \(most) were accepted")
                }
                count += 1
                try await add(line)
            }
            while let part = try await call.request.body.next() {
                for line in lines.append(part) { try await take(line) }
            }
            for line in lines.end() { try await take(line) }
        }
    }
}

/// Transforms the elements that `produce` passes to its argument, up to 512 of them concurrently.
/// - Parameters:
///   - transform: A function that transforms an element. `index` is that of the element, from 0.
///   - produce: A function that passes each element to its argument, which waits until the element is accepted.
/// - Returns: The results in the order of the elements.
/// - Throws: The errors of `produce`, after the elements before were transformed, in tasks that are cancelled.
func mapConcurrently<Element: Sendable, Result: Sendable>(
    _ transform: @escaping @Sendable (Element, _ index: Int) async -> Result,
    of produce: (_ add: (Element) async throws -> Void) async throws -> Void
) async throws -> [Result] {
    try await withThrowingTaskGroup(of: (Int, Result).self) { group in
        var (results, count): ([Result?], Int) = ([], 0)
        try await produce { element in
            let index = results.count
            results.append(nil)
            if count == 512, let (done, result) = try await group.next() {
                results[done] = result
                count -= 1
            }
            count += 1
            group.addTask { (index, await transform(element, index)) }
        }
        for try await (index, result) in group { results[index] = result }
        return results.compactMap(\.self)
    }
}

/// Splits chunks of data into lines. A pure value that buffers at most the longest allowed line.
struct LineBuffer {
    /// A line without its line ending.
    struct Line: Sendable {
        /// The line number, starting at 1.
        let number: Int
        /// The content; nil if the line is too long.
        let bytes: [UInt8]?

        /// True if the line contains only whitespace.
        var isBlank: Bool { bytes?.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0d } ?? false }
    }

    private let longest: Int
    private var rest: [UInt8] = []
    private var isTooLong = false
    private var number = 0

    /// - Parameter longest: the maximum length of a line in bytes.
    init(longest: Int) { self.longest = longest }

    /// Appends a chunk and returns the lines that end in it.
    mutating func append(_ part: [UInt8]) -> [Line] {
        var lines: [Line] = []
        var from = part.startIndex
        while let end = part[from...].firstIndex(of: UInt8(ascii: "\n")) {
            take(part[from..<end])
            lines.append(cut())
            from = end + 1
        }
        take(part[from...])
        return lines
    }

    /// Returns the last line if it has no line ending.
    mutating func end() -> [Line] { rest.isEmpty && !isTooLong ? [] : [cut()] }

    private mutating func take(_ bytes: ArraySlice<UInt8>) {
        if isTooLong { return }
        if rest.count + bytes.count > longest {
            (rest, isTooLong) = ([], true)
        } else {
            rest += bytes
        }
    }

    private mutating func cut() -> Line {
        number += 1
        defer { (rest, isTooLong) = ([], false) }
        return Line(number: number, bytes: isTooLong ? nil : rest)
    }
}
