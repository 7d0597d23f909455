import MalformedImages
import Subprocess
import TestSupport
import Vips

/// The origin of all sources: an nginx whose log counts the requests. Each kind of failure has a separate host, so that
/// the circuit breaker of one does not affect the others.
struct Origin: Sendable {
    /// A malformed file and the expected outcomes.
    struct Hostile: Sendable {
        let url: String
        let ends: Set<String>
    }

    /// The URL prefix of images that stay fresh for longer than any run. A number is appended. Its last digit is the
    /// number of the picture, so that an image of another source is recognized.
    let fresh: String
    /// Images that must not be stored.
    let volatile: String
    /// The same as `fresh`, transferred over two seconds.
    let slow: String
    /// Images of twelve million pixels.
    let heavy: String
    /// An image whose transfer takes minutes.
    let endless: String
    /// URLs that respond with 404.
    let missing: String
    /// URLs that respond with 500.
    let broken: String
    /// Malformed files. A number is appended to each URL.
    let hostile: [Hostile]

    private let server: Nginx
    private let folder: TemporaryFolder

    static func start() async throws -> Origin {
        let folder = TemporaryFolder("origin")
        let pictures = try (0..<10).map { number in
            try Image(color: [200, 100, Double(25 * number)], width: 480, height: 360).encoded(as: .jpeg)
        }
        for (number, picture) in pictures.enumerated() { folder.write(picture, to: "picture-\(number).jpg") }
        // A PNG is always decoded completely, even for a small result.
        folder.write(try Image(color: [90, 40, 160], width: 4000, height: 3000).encoded(as: .png), to: "heavy.png")
        // A JPEG may have any data after its end.
        folder.write(pictures[0] + [UInt8](repeating: 0, count: 1 << 20), to: "endless.jpg")
        let files = MalformedImage.all().compactMap { file -> (file: MalformedImage, ends: Set<String>)? in
            guard case .fails(let codes) = file.end, file.time > .seconds(60), !file.isBoundByChild else { return nil }
            return (file, Set(codes.map { "failed/\($0.rawValue)" }))
        }.prefix(40)
        for (number, entry) in files.enumerated() { folder.write(entry.file.bytes(), to: "hostile-\(number)") }

        let port = LoopbackPort.reserve()
        let server = try await Nginx.start(
            serving: folder.path, port: port,
            """
            listen 127.0.0.2:\(port);
            listen 127.0.0.3:\(port);
            location /fresh/ { rewrite ([0-9])$ /picture-$1.jpg break; expires 24h; }
            location /slow/ {
                rewrite ([0-9])$ /picture-$1.jpg break; expires 24h; limit_rate \(max(500, pictures[0].count / 2));
            }
            location /heavy/ { rewrite ^ /heavy.png break; expires 24h; }
            location /endless/ { rewrite ^ /endless.jpg break; expires 24h; limit_rate 2k; }
            location /volatile/ { rewrite ([0-9])$ /picture-$1.jpg break; add_header Cache-Control no-store; }
            location /missing/ { return 404; }
            location /broken/ { return 500; }
            location /hostile/ { rewrite ^/hostile/([0-9]+)/ /hostile-$1 break; expires 24h; }
            """)
        return Origin(
            fresh: "\(server.url)/fresh/", volatile: "\(server.url)/volatile/",
            slow: "http://127.0.0.3:\(port)/slow/", heavy: "\(server.url)/heavy/",
            endless: "http://127.0.0.3:\(port)/endless/",
            missing: "\(server.url)/missing/", broken: "http://127.0.0.2:\(port)/broken/",
            hostile: files.indices.map { Hostile(url: "\(server.url)/hostile/\($0)/", ends: files[$0].ends) },
            server: server, folder: folder)
    }

    /// The number of requests for each path.
    var requests: [String: Int] {
        var counts: [String: Int] = [:]
        for line in server.requests() {
            let words = line.split(separator: " ")
            if words.count > 1 { counts[String(words[1]), default: 0] += 1 }
        }
        return counts
    }

    /// Returns the picture of a URL: the first component of its path and the last digit.
    static func picture(of url: String) -> String {
        let name = path(of: url).split(separator: "/")
        return "\(name.first ?? "")\(url.last ?? " ")"
    }

    /// Returns the path of a URL, as it appears in the log.
    static func path(of url: String) -> String {
        "/" + url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: true).dropFirst(2).joined()
    }

    func stop() async {
        await server.stop()
        await folder.remove()
    }
}
