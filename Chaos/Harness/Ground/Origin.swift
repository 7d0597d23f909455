import HostileFiles
import Processes
import TestSupport
import Vips

/// The origin of all sources: an nginx, whose log says what was asked for. Each kind of trouble has a host of its own, so that what workers
/// learn of one origin they do not hold against another.
struct Origin: Sendable {
    /// A file that must be refused, and how.
    struct Hostile: Sendable {
        let url: String
        let ends: Set<String>
    }

    /// The host whose pictures may be kept for longer than any run.
    let fresh: String
    /// Pictures that may be kept nowhere.
    let volatile: String
    /// The same as `fresh`, dripping for two seconds.
    let slow: String
    /// Pictures of twelve million pixels.
    let heavy: String
    /// A picture that goes on for minutes.
    let endless: String
    /// 404.
    let missing: String
    /// 500.
    let broken: String
    /// Files that must be refused. A number is put behind each URL.
    let hostile: [Hostile]

    private let server: Nginx
    private let folder: TemporaryFolder

    static func start() async throws -> Origin {
        let folder = TemporaryFolder("origin")
        let picture = try Image(color: [200, 100, 50], width: 480, height: 360).encoded(as: .jpeg)
        folder.write(picture, to: "picture.jpg")
        // PNG is decoded whole, however small the result.
        folder.write(try Image(color: [90, 40, 160], width: 4000, height: 3000).encoded(as: .png), to: "heavy.png")
        // Behind its end a JPEG may have anything.
        folder.write(picture + [UInt8](repeating: 0, count: 1 << 20), to: "endless.jpg")
        let files = HostileFile.all().compactMap { file -> (file: HostileFile, ends: Set<String>)? in
            guard case .fails(let codes) = file.end, file.time > .seconds(60), !file.isBoundByChild else { return nil }
            return (file, Set(codes.map { "failed/\($0.rawValue)" }))
        }.prefix(40)
        for (number, entry) in files.enumerated() { folder.write(entry.file.bytes(), to: "hostile-\(number)") }

        let port = LoopbackPort.free()
        let server = try await Nginx.start(
            serving: folder.path, port: port,
            """
            listen 127.0.0.2:\(port);
            listen 127.0.0.3:\(port);
            location /fresh/ { rewrite ^ /picture.jpg break; expires 24h; }
            location /slow/ { rewrite ^ /picture.jpg break; expires 24h; limit_rate \(max(500, picture.count / 2)); }
            location /heavy/ { rewrite ^ /heavy.png break; expires 24h; }
            location /endless/ { rewrite ^ /endless.jpg break; expires 24h; limit_rate 2k; }
            location /volatile/ { rewrite ^ /picture.jpg break; add_header Cache-Control no-store; }
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

    /// How often each path was asked for.
    var requests: [String: Int] {
        var counts: [String: Int] = [:]
        for line in server.requests() {
            let words = line.split(separator: " ")
            if words.count > 1 { counts[String(words[1]), default: 0] += 1 }
        }
        return counts
    }

    /// The part of a URL that its log knows.
    static func path(of url: String) -> String {
        "/" + url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: true).dropFirst(2).joined()
    }

    func stop() async {
        await server.stop()
        await folder.remove()
    }
}
