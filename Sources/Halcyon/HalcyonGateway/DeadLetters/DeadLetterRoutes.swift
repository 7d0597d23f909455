import HTTPServer
import HalcyonCluster
import JSON
import Kafka

/// Routes that list, return and replay dead letters.
struct DeadLetterRoutes: Sendable {
    let deadLetters: DeadLetterService
    let producer: Producer

    /// The maximum size of a replay request in bytes, enough for the maximum number of names.
    private var bodyBytes: Int { 4096 + 40 * deadLetters.options.most }

    var all: [Route] {
        [
            Route("GET", "/v1/dead", for: .admin, answer: list),
            Route("POST", "/v1/dead/replay", for: .admin, answer: replay),
            Route("GET", "/v1/dead/{letter}", for: .admin, answer: show),
        ]
    }

    private func list(_ call: RequestContext) async throws -> HTTPServer.Response {
        let request = try DeadLetterRequest(query: call.request.query, most: deadLetters.options.most)
        let json = try await deadLetters.read { index, deadline in
            var (letters, bytes): ([[UInt8]], Int) = ([], 0)
            let next = try await deadLetters.topic.forEach(
                request.query, in: index, from: request.cursor.offsets, until: deadline
            ) { letter in
                letters.append(letter.json(isWhole: false))
                bytes += letters.last?.count ?? 0
                return letters.count < request.limit && bytes < deadLetters.options.pageBytes
            }
            var writer = JSONWriter(capacity: bytes + 256)
            writer.object { writer in
                writer.member("open", Int64(index.count))
                writer.name("letters")
                writer.array { writer in for letter in letters { writer.raw(letter) } }
                writer.member("next", next.map { TopicCursor($0).text })
            }
            return writer.bytes
        }
        return HTTPServer.Response(status: 200, json: json)
    }

    private func show(_ call: RequestContext) async throws -> HTTPServer.Response {
        let letter = DeadLetterID(call["letter"])
        let json = try await deadLetters.read { index, deadline -> [UInt8]? in
            guard let letter else { return nil }
            var json: [UInt8]?
            _ = try await deadLetters.topic.forEach(DeadLetterQuery(letters: [letter]), in: index, until: deadline) {
                json = $0.json(isWhole: true)
                return false
            }
            return json
        }
        guard let json else { throw Problem(.notFound, "no such dead letter") }
        return HTTPServer.Response(status: 200, json: json)
    }

    /// Replays the requested dead letters. Named ones that were replayed before are reported as such and not sent
    /// again.
    private func replay(_ call: RequestContext) async throws -> HTTPServer.Response {
        guard call.bodyType == "application/json" else {
            throw Problem(.unsupportedMediaType, "unsupported Content-Type; use application/json")
        }
        let request = try DeadLetterRequest(
            replay: try await call.request.body.collect(withTimeout: bodyBytes), most: deadLetters.options.most)
        let replaying = DeadLetterReplayer(deadLetters.topic, by: producer, isDry: request.isDry)
        let json = try await deadLetters.read { index, deadline in
            var replayed: [ReplayResult] = []
            let next = try await replaying.run(
                request.query, in: index, from: request.cursor.offsets, withTimeout: request.limit, until: deadline
            ) { replayed.append($0) }
            var writer = JSONWriter(capacity: 1024)
            writer.object { writer in
                writer.member("dryRun", request.isDry)
                writer.name("letters")
                writer.array { writer in for letter in replayed { writer.value(letter) } }
                if let letters = request.query.letters {
                    let missing = letters.subtracting(replayed.map(\.letter.letter.id)).sorted()
                    writer.name("missing")
                    writer.array { writer in for letter in missing { writer.value(letter.description) } }
                }
                writer.member("next", next.map { TopicCursor($0).text })
            }
            return writer.bytes
        }
        return HTTPServer.Response(status: 200, json: json)
    }
}
