import HTTPServer
import HalcyonWire
import JSON

/// Takes jobs that come one a line (NDJSON), and answers with a line for each, in their order.
///
/// What is read from the connection is what Kafka takes: while it is slow, the client waits. A line that is no job has its problem in the answer,
/// and the others go on. When the connection breaks off, what had come whole is taken: give jobs ids of their own, and submit all again.
struct JobLines: Sendable {
    let desk: JobDesk
    /// Lines of one request.
    let most: Int

    /// Jobs on their way to the brokers at once.
    private static let window = 512

    /// - Throws: ``Problem``, `HTTPServer.BodyError`.
    func take(_ call: Call) async throws -> HTTPServer.Response {
        let answers = try await withThrowingTaskGroup(of: (Int, [UInt8]).self) { group in
            var (answers, count): ([[UInt8]], Int) = ([], 0)
            var lines = LineBuffer(longest: desk.reader.maximumBytes)
            func add(_ line: LineBuffer.Line) async throws {
                if line.isBlank { return }
                if answers.count == most { throw Problem(.tooLarge, "more than \(most) jobs; those before were taken") }
                let index = answers.count
                answers.append([])
                if count == Self.window, let (done, answer) = try await group.next() {
                    answers[done] = answer
                    count -= 1
                }
                count += 1
                group.addTask { (index, await answer(line, call)) }
            }
            while let part = try await call.request.body.next() {
                for line in lines.append(part) { try await add(line) }
            }
            for line in lines.end() { try await add(line) }
            for try await (index, answer) in group { answers[index] = answer }
            return answers
        }
        return HTTPServer.Response(
            status: 200, headers: ["Content-Type": "application/x-ndjson", "Cache-Control": "no-store"],
            body: .stream(length: answers.reduce(0) { $0 + $1.count }) { writer in
                for answer in answers { try await writer.write(answer) }
            })
    }

    private func answer(_ line: LineBuffer.Line, _ call: Call) async -> [UInt8] {
        var writer = JSONWriter(capacity: 256)
        do throws(Problem) {
            guard let bytes = line.bytes else {
                throw Problem(.tooLarge, "the job is longer than \(desk.reader.maximumBytes) bytes")
            }
            let prepared = try desk.prepare(bytes)
            try await desk.submit(prepared, for: call.caller, traceparent: call.traceparent)
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

/// Cuts what comes in parts into lines. A pure value, which never holds more than the longest line.
struct LineBuffer {
    /// A line, without its end.
    struct Line: Sendable {
        /// Counted from 1.
        let number: Int
        /// nil for one that is too long.
        let bytes: [UInt8]?

        /// Whether there is nothing on it.
        var isBlank: Bool { bytes?.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0d } ?? false }
    }

    private let longest: Int
    private var rest: [UInt8] = []
    private var isTooLong = false
    private var number = 0

    /// - Parameter longest: bytes of the longest line.
    init(longest: Int) { self.longest = longest }

    /// The lines that end in this part.
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

    /// What stands behind the last end of a line, if anything does.
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
