import HTTPServer
import HalcyonCluster
import JSON
import Kafka

/// Dead letters over HTTP: listed page by page, looked at, replayed.
struct DeadRoutes: Sendable {
    let desk: DeadDesk
    let producer: Producer

    /// Bytes of what says which letters are to be replayed: room for as many names as there may be.
    private var bodyBytes: Int { 4096 + 40 * desk.options.most }

    var all: [Route] {
        [
            Route("GET", "/v1/dead", for: .admin, answer: list),
            Route("POST", "/v1/dead/replay", for: .admin, answer: replay),
            Route("GET", "/v1/dead/{letter}", for: .admin, answer: show),
        ]
    }

    private func list(_ call: Call) async throws -> HTTPServer.Response {
        let request = try LetterRequest(query: call.request.query, most: desk.options.most)
        let json = try await desk.read { book, deadline in
            var (letters, bytes): ([[UInt8]], Int) = ([], 0)
            let next = try await desk.topic.forEach(
                request.query, in: book, from: request.cursor.offsets, until: deadline
            ) { letter in
                letters.append(letter.json(isWhole: false))
                bytes += letters.last?.count ?? 0
                return letters.count < request.limit && bytes < desk.options.pageBytes
            }
            var writer = JSONWriter(capacity: bytes + 256)
            writer.object { writer in
                writer.member("open", Int64(book.count))
                writer.name("letters")
                writer.array { writer in for letter in letters { writer.raw(letter) } }
                writer.member("next", next.map { TopicCursor($0).text })
            }
            return writer.bytes
        }
        return HTTPServer.Response(status: 200, json: json)
    }

    private func show(_ call: Call) async throws -> HTTPServer.Response {
        let letter = LetterID(call["letter"])
        let json = try await desk.read { book, deadline -> [UInt8]? in
            guard let letter else { return nil }
            var json: [UInt8]?
            _ = try await desk.topic.forEach(LetterQuery(letters: [letter]), in: book, until: deadline) {
                json = $0.json(isWhole: true)
                return false
            }
            return json
        }
        guard let json else { throw Problem(.notFound, "there is no such letter") }
        return HTTPServer.Response(status: 200, json: json)
    }

    /// Letters that are named and were replayed already are answered as such, and not sent again.
    private func replay(_ call: Call) async throws -> HTTPServer.Response {
        guard call.bodyType == "application/json" else {
            throw Problem(.unsupportedMediaType, "what is to be replayed is application/json")
        }
        let request = try LetterRequest(
            replay: try await call.request.body.collect(atMost: bodyBytes), most: desk.options.most)
        let replaying = Replaying(desk.topic, by: producer, isDry: request.isDry)
        let json = try await desk.read { book, deadline in
            var replayed: [ReplayedLetter] = []
            let next = try await replaying.run(
                request.query, in: book, from: request.cursor.offsets, atMost: request.limit, until: deadline
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
