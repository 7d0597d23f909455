import Formats
import Glibc

extension HTTPServer {
    /// A request with a complete and valid head.
    public struct Request: Sendable {
        /// The method, such as `GET`.
        public let method: String
        /// The target, unchanged.
        public let target: String
        /// The decoded segments of the path: none for `/`, `["a", "b"]` for `/a/b`, `["a", ""]` for `/a/`.
        public let path: [String]
        /// The decoded pairs of the query, in order.
        public let query: [QueryItem]
        /// The header fields.
        public let headers: HTTPFields
        /// The host with its port, if any, from the target or else from `Host`. Empty if an HTTP/1.0 request has
        /// neither.
        public let host: String
        /// The address of the peer, which may be a proxy.
        public let remoteAddress: String
        /// The body, which may not have arrived yet.
        public let body: RequestBody

        init(_ head: RequestHead, remoteAddress: String, body: RequestBody) {
            method = head.method
            target = head.rawTarget
            path = head.target.path
            query = head.target.query
            headers = head.headers
            host = head.target.authority ?? head.headers.first("Host") ?? ""
            self.remoteAddress = remoteAddress
            self.body = body
        }

        /// The value of the first query pair with this name.
        public func value(of name: String) -> String? { query.first { $0.name == name }?.value }
    }

    /// A request body that is read in parts. A part is read from the connection only when the handler asks for it, so a
    /// slow handler slows the client down (backpressure). Only one task at a time may read.
    public struct RequestBody: Sendable {
        /// The length in bytes if the request declares it: 0 for a request without a body, nil for a chunked one.
        public let length: Int?
        private let exchange: HTTPTransaction

        init(_ framing: RequestHead.Framing, _ exchange: HTTPTransaction) {
            length =
                switch framing {
                case .none: 0
                case .length(let length): length
                case .chunked: nil
                }
            self.exchange = exchange
        }

        /// Reads the next part, of 1 byte to about 64 KiB; nil at the end of the body.
        ///
        /// The first call sends `100 Continue` to a client that waits for it.
        /// - Throws: ``BodyError/tooLarge(limit:)`` past the limit of the server, ``BodyError/connectionLost`` if the
        ///   client has disconnected, the request's time is over or the task is cancelled.
        public func next() async throws(BodyError) -> [UInt8]? { try await exchange.nextPart() }

        /// Reads the whole body.
        /// - Throws: ``BodyError``; ``BodyError/tooLarge(limit:)`` past `limit` bytes, before anything is read if the
        ///   request declares its length.
        public func collect(upTo limit: Int) async throws(BodyError) -> [UInt8] {
            if let length, length > limit { throw .tooLarge(limit: limit) }
            var all: [UInt8] = []
            while let part = try await next() {
                if all.isEmpty { all = part } else { all += part }
                if all.count > limit { throw .tooLarge(limit: limit) }
            }
            return all
        }
    }
}

/// The address of a socket's peer.
enum PeerAddress {
    /// The address as text, such as `127.0.0.1` or `::1`; empty if there is none.
    static func text(of socket: Int32) -> String {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard getpeername(socket, address, &size) == 0 else { return "" }
                var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
                guard getnameinfo(address, size, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0 else {
                    return ""
                }
                return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            }
        }
    }
}
