import Dispatch
import Foundation
import HTTPServer
import HalcyonKit

/// Serves thumbnails of the images below one URL until SIGINT or SIGTERM: server-example GATEWAY ORIGIN [PORT]. Set
/// HALCYON_KEY if the gateway requires a key.
///
/// `GET /cats/tom.jpg?width=200` is the image at `ORIGIN/cats/tom.jpg`, 200 pixels wide. Popular thumbnails come from
/// memory, and simultaneous requests for the same one are one request to the gateway.
@main
struct Main {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard (2...3).contains(arguments.count), let gateway = URL(string: arguments[1]),
            let port = arguments.count == 3 ? UInt16(arguments[3]) : 0
        else {
            print("usage: server-example GATEWAY ORIGIN [PORT]")
            exit(2)
        }
        var configuration = ImageLoader.Configuration()
        configuration.memoryBytes = 256 << 20
        let loader = ImageLoader(
            HalcyonClient(gateway, key: ProcessInfo.processInfo.environment["HALCYON_KEY"]),
            configuration: configuration)
        let thumbnails = Thumbnails(loader: loader, origin: arguments[2])
        let server = try HTTPServer.start(on: "127.0.0.1", port: port) { await thumbnails.response(to: $0) }
        print("http://127.0.0.1:\(server.port)")
        // Output to a pipe is buffered.
        fflush(nil)
        await signals([SIGINT, SIGTERM])
        await server.shutdown(gracePeriod: .seconds(10))
    }

    /// Waits for one of these signals.
    private static func signals(_ numbers: [Int32]) async {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let sources = numbers.map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { continuation.yield() }
            source.resume()
            return source
        }
        for await _ in stream { break }
        sources.forEach { $0.cancel() }
    }
}

/// The thumbnails of the images below a URL.
struct Thumbnails: Sendable {
    let loader: ImageLoader
    let origin: String

    func response(to request: HTTPServer.Request) async -> HTTPServer.Response {
        guard request.method == "GET" else { return .init(status: 405, headers: ["Allow": "GET"]) }
        guard let source = source(for: request.path) else { return .init(status: 404, text: "not found\n") }
        guard let width = request.value(of: "width").flatMap(Double.init), (1...2000).contains(width) else {
            return .init(status: 400, text: "width must be a number from 1 to 2000\n")
        }
        do {
            // The task is cancelled when the client disconnects.
            let image = try await loader.load(ImageRequest(ImageJob.Source(source), width: width, format: .webp))
            return HTTPServer.Response(
                status: 200,
                headers: [
                    "Content-Type": image.mediaType,
                    // RFC 9211
                    "Cache-Status": image.cacheStatus == .network ? "thumbnails; fwd=miss" : "thumbnails; hit",
                ], body: .bytes(Array(image.data)))
        } catch HalcyonError.problem(let problem) where problem.kind == .notFound {
            return .init(status: 404, text: "not found\n")
        } catch {
            return .init(status: 502, text: "\(error)\n")
        }
    }

    /// The URL of an image; nil for a path that might lead out of the origin.
    private func source(for path: [String]) -> String? {
        guard !path.isEmpty, !path.contains(where: { ["", ".", ".."].contains($0) || $0.contains("/") }) else {
            return nil
        }
        return path.reduce(origin) { url, segment in
            "\(url)/\(segment.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? "")"
        }
    }
}
