import HTTPFields

extension HTTPServer {
    /// The header fields of a request or of a response.
    public typealias Headers = HTTPFields
}
