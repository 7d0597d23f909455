import TestSupport

/// An HTTP server of photographs, each under as many names as are wanted: nothing is stored yet of what was never named.
public final class PhotographServer: Sendable {
    /// How many there are.
    public let count: Int
    private let server: Server

    private enum Server {
        /// An nginx that answers at once.
        case fast(Nginx, TemporaryFolder)
        /// A server that answers after a delay, like one on the Internet.
        case slow(RawOrigin)
    }

    /// Starts it.
    /// - Parameter delay: the time until it answers; 0 for no delay.
    public init(_ photographs: [[UInt8]], delay: Duration = .zero) async throws {
        count = photographs.count
        guard delay == .zero else {
            server = .slow(
                RawOrigin(keepsLog: false) { request in
                    let name = request.path.dropFirst().prefix { $0 != "." }
                    guard let photograph = Int(name).map({ photographs[$0] }) else {
                        return RawOrigin.answer("404 Not Found")
                    }
                    let head = ["200 OK", "Cache-Control: max-age=3600", "Content-Length: \(photograph.count)", "", ""]
                    return [.pause(delay), .text("HTTP/1.1 " + head.joined(separator: "\r\n")), .bytes(photograph)]
                })
            return
        }
        let folder = TemporaryFolder("photographs")
        for (number, bytes) in photographs.enumerated() { _ = folder.write(bytes, to: "\(number).jpg") }
        server = .fast(try await Nginx.start(serving: folder.path, "expires 1h; access_log off;"), folder)
    }

    /// A name of its own for each number and tag, for one photograph after the other.
    public func url(_ number: Int, _ tag: String) -> String {
        let path = "/\(number % count).jpg?\(tag)\(number / count)"
        return switch server {
        case .fast(let nginx, _): nginx.url + path
        case .slow(let origin): origin.url(path)
        }
    }

    /// Ends it, and removes the photographs.
    public func remove() async {
        switch server {
        case .fast(let nginx, let folder):
            await nginx.stop()
            await folder.remove()
        // A server that does not end disturbs no result.
        case .slow(let origin): try? await origin.stop()
        }
    }
}
