import CMicroHTTP

extension HTTPServer {
    /// A response to many requests: its headers are looked at once, and it is brought once into the form in which it is sent.
    ///
    /// `@unchecked Sendable`: libmicrohttpd counts those who have its response under a lock of its own, and nobody changes it once it is made.
    public final class SharedResponse: @unchecked Sendable {
        /// Bytes of its body at most.
        public static let mostBytes = Download.wholeLimit
        /// What it was made of.
        let response: Response
        private let handle: OpaquePointer

        /// What it answers with.
        public var status: Int { response.status }

        /// Nil for what is made for one request alone: a stream, or a body that is longer than what is handed over as a whole. And for what
        /// cannot be sent.
        public init?(_ response: Response) {
            guard !response.isUnsendable, !response.closesConnection else { return nil }
            let body: [UInt8]
            switch response.body {
            case .none: body = []
            case .bytes(let bytes): body = bytes
            case .stream: return nil
            }
            guard body.count <= Self.mostBytes, let handle = Answer.whole(body) else { return nil }
            Answer.add(response.headers, to: handle)
            (self.response, self.handle) = (response, handle)
        }

        deinit { MHD_destroy_response(handle) }

        /// Has it sent. `MHD_NO`, which closes the connection, where that cannot be.
        func queue(on connection: OpaquePointer) -> MHD_Result {
            MHD_queue_response(connection, UInt32(clamping: response.status), handle)
        }
    }
}
