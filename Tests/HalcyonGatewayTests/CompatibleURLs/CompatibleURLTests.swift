import Foundation
import HTTPServer
import HalcyonCoding
import HalcyonModel
import Hashing
import TestSupport
import Testing

@testable import HalcyonGateway

/// Jobs parsed from URLs of imgproxy, thumbor and imagor.
@Suite struct CompatibleURLTests {
    /// A line of a file in Tests/CompatibleURLs. `scripts/compatible-urls` renders the same URLs.
    struct Vector: Sendable, CustomTestStringConvertible {
        let grammar: String
        let url: String
        /// The job as JSON with sorted members, or nil if the URL is rejected.
        let job: String?
        /// The error, or nil if there is none.
        let error: String?

        var testDescription: String { "\(grammar) \(url)" }
    }

    static let vectors: [Vector] = ["imgproxy", "thumbor", "imagor"].flatMap { grammar in
        let file = URL(filePath: Repository.path("Tests/CompatibleURLs/\(grammar)-urls.json"))
        // A file that cannot be read leaves no vectors, which a test notices.
        let lines = (try? JSONSerialization.jsonObject(with: Data(contentsOf: file))) as? [[String: Any]] ?? []
        return lines.map { line in
            Vector(
                grammar: grammar, url: expanded(line["url"] as? String ?? ""), job: line["job"].map(sorted),
                error: line["error"] as? String)
        }
    }

    /// Replaces `{b64:TEXT}` by the text in base64url.
    private static func expanded(_ url: String) -> String {
        guard let open = url.firstRange(of: "{b64:"), let close = url[open.upperBound...].firstIndex(of: "}") else {
            return url
        }
        let code = Base64.encode(Array(url[open.upperBound..<close].utf8))
            .map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }.filter { $0 != "=" }
        return "\(url[..<open.lowerBound])\(String(code))\(url[url.index(after: close)...])"
    }

    private static func sorted(_ value: Any) -> String {
        // Values that came from JSON can be written as JSON.
        let data = try? JSONSerialization.data(
            withJSONObject: value, options: [.sortedKeys, .withoutEscapingSlashes, .fragmentsAllowed])
        return String(decoding: data ?? Data(), as: UTF8.self)
    }

    static var options: CompatibleURLOptions {
        var options = CompatibleURLOptions()
        options.imgproxy.prefix = "/"
        options.imgproxy.allowsUnsigned = true
        options.imgproxy.watermark = "http://example.org/small.jpg"
        options.imgproxy.presets = ["thumb": "rs:fill:80:80", "sharp": "sh:0.5/q:90", "loop": "w:10/pr:loop"]
        options.thumbor.prefix = "/thumbor"
        options.thumbor.allowsUnsigned = true
        options.imagor.prefix = "/imagor"
        options.imagor.allowsUnsigned = true
        return options
    }

    static func grammar(_ name: String, _ options: CompatibleURLOptions = options) -> URLGrammar {
        switch name {
        case "imgproxy": .imgproxy(options.imgproxy)
        case "thumbor": .thumbor(options.thumbor)
        default: .thumbor(options.imagor)
        }
    }

    static func parse(
        _ grammar: String, _ target: String, _ options: CompatibleURLOptions = options
    ) throws(Problem) -> URLGrammar.Image {
        guard let prefix = URLPrefix("/") else { throw Problem(.notFound, "") }
        return try Self.grammar(grammar, options).parse(prefix.rest(of: target))
    }

    private static func json(_ image: URLGrammar.Image) throws -> String {
        sorted(try JSONSerialization.jsonObject(with: Data(image.draft.json)))
    }

    @Test func vectorsCoverEachGrammar() {
        for grammar in ["imgproxy", "thumbor", "imagor"] {
            let own = Self.vectors.filter { $0.grammar == grammar }
            #expect(own.count { $0.job != nil } >= 60 && own.count { $0.error != nil } >= 40, "\(grammar)")
        }
    }

    @Test(arguments: vectors) func urlIsTheJobOrTheError(_ vector: Vector) throws {
        switch Result(catching: { () throws(Problem) in try Self.parse(vector.grammar, vector.url) }) {
        case .success(let image):
            #expect(try Self.json(image) == vector.job ?? "", "\(vector.error ?? "")")
            // Workers accept the job, too.
            _ = try ValidatedJob(image.draft, fallbackID: "a", by: JobDecoder())
        case .failure(let problem):
            #expect(problem.detail == vector.error ?? "", "\(vector.job ?? "")")
            #expect([.badRequest, .forbidden].contains(problem.kind))
        }
    }
}
