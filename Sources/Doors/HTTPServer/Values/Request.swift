import Formats
import Glibc

extension HTTPServer {
    /// A request whose head has come and is sound.
    public struct Request: Sendable {
        /// The method, such as `GET`.
        public let method: String
        /// The target as it came.
        public let target: String
        /// The path's segments, decoded: none for `/`, `["a", "b"]` for `/a/b`, `["a", ""]` for `/a/`.
        public let path: [String]
        /// The query's pairs, decoded, in their order.
        public let query: [QueryItem]
        /// The header fields.
        public let headers: HTTPFields
        /// The host, and the port where one is named: of the target, else of `Host`; empty where HTTP/1.0 names none.
        public let host: String
        /// The address of the peer, which may be a proxy's.
        public let remoteAddress: String
        /// The body, which has not necessarily come.
        public let body: RequestBody

        init(_ head: Head, remoteAddress: String, body: RequestBody) {
            method = head.method
            target = head.rawTarget
            path = head.target.path
            query = head.target.query
            headers = head.headers
            host = head.target.authority ?? head.headers.first("Host") ?? ""
            self.remoteAddress = remoteAddress
            self.body = body
        }

        /// The value of the first pair of the query with this name.
        public func value(of name: String) -> String? { query.first { $0.name == name }?.value }
    }

    /// A request's body, pulled part by part: what nobody pulls is not read from the connection. One task at a time may pull.
    public struct RequestBody: Sendable {
        /// How many bytes it has, where the request says so: 0 for a request without a body, nil for a chunked one.
        public let length: Int?
        private let exchange: Exchange

        init(_ framing: Head.Framing, _ exchange: Exchange) {
            length =
                switch framing {
                case .none: 0
                case .length(let length): length
                case .chunked: nil
                }
            self.exchange = exchange
        }

        /// The next bytes, at least one, and about 64 KiB at most; nil at the body's end.
        ///
        /// A client that waits for `100 Continue` is told so by the first call.
        /// - Throws: ``BodyError/tooLarge(limit:)`` past the limit of the server, ``BodyError/connectionLost`` when the client has
        ///   left, the request's time is over or the task is cancelled.
        public func next() async throws(BodyError) -> [UInt8]? { try await exchange.nextPart() }

        /// The whole body.
        /// - Throws: ``BodyError``; ``BodyError/tooLarge(limit:)`` past `limit` bytes, before anything is read where the request
        ///   tells its length.
        public func collect(atMost limit: Int) async throws(BodyError) -> [UInt8] {
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

/// Who is on the other side of a socket.
enum PeerAddress {
    /// The address in its usual text, such as `127.0.0.1` or `::1`; empty where there is none.
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
