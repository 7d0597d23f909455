import Concurrency
import Foundation
import FoundationNetworking
import HalcyonKit

/// A transport that simulates a gateway and records its requests.
final class FakeTransport: HalcyonClient.Transport {
    typealias Handler = @Sendable (URLRequest) async throws -> HalcyonClient.Response

    private let handler: Handler
    private let recorded = Lock<[(request: URLRequest, kind: HalcyonClient.RequestKind)]>([])
    var requests: [(request: URLRequest, kind: HalcyonClient.RequestKind)] { recorded.withLock { $0 } }

    init(_ handler: @escaping Handler) { self.handler = handler }

    func send(
        _ request: URLRequest, kind: HalcyonClient.RequestKind, bufferLimit: Int
    ) async throws -> HalcyonClient.Response {
        recorded.withLock { $0.append((request, kind)) }
        return try await handler(request)
    }

    /// Returns a gateway for which every job is ready immediately, with `count` images.
    static func ready(
        images count: Int, image: @escaping @Sendable (String) async throws -> Data
    ) -> FakeTransport {
        FakeTransport { request in
            let path = request.url!.pathComponents
            if request.httpMethod == "POST" {
                return HalcyonClient.Response(
                    status: 202, body: Data(#"{"id": "x", "lane": "later", "images": []}"#.utf8))
            }
            if path.contains("images") {
                return HalcyonClient.Response(status: 200, body: try await image(path.last!))
            }
            let variants = (0..<count).map { key in
                #"{"key": "\#(key)", "width": 1, "height": 1, "format": "png", "bytes": 1, "sha256": ""}"#
            }
            let event = #"""
                {"id": "1", "type": "halcyon.image.ready", "time": "2026-11-21T10:31:07.250Z", "data": {
                "job": {"id": "x"}, "origin": "network", "timings": {}, "variants": [\#(variants.joined(separator: ","))]}}
                """#
            return HalcyonClient.Response(
                status: 200, body: Data(#"{"id": "x", "state": "ready", "event": \#(event)}"#.utf8))
        }
    }
}

extension HalcyonClient.Response {
    /// Returns the response to a rendering.
    /// - Parameters:
    ///   - text: The bytes of the image.
    ///   - maxAge: The time for which the image may be used, in seconds.
    ///   - tag: The entity tag.
    static func image(_ text: String, maxAge: Int = 60, tag: String? = nil, _ more: [String: String] = [:]) -> Self {
        var headers = ["Cache-Control": "private, max-age=\(maxAge)", "Content-Type": "image/webp"]
        headers["ETag"] = tag
        headers["Halcyon-Image-Size"] = "\(text.utf8.count)x7"
        return HalcyonClient.Response(
            status: 200, headers: headers.merging(more) { $1 }, body: Data(text.utf8))
    }

    /// Returns a problem.
    static func problem(_ status: Int, _ kind: String, code: String? = nil) -> Self {
        let code = code.map { #", "code": "\#($0)""# } ?? ""
        return HalcyonClient.Response(
            status: status, body: Data(#"{"type": "/problems/\#(kind)"\#(code)}"#.utf8))
    }
}

extension URLRequest {
    /// The value of a parameter.
    func parameter(_ name: String) -> String? {
        URLComponents(url: url!, resolvingAgainstBaseURL: false)?.queryItems?.first { $0.name == name }?.value
    }
}
