import Curl
import Expat
import Formats
import HalcyonModel
import HalcyonSources
import Hashing

/// A storage in a bucket of an S3-compatible store.
///
/// The record of an object is its metadata `x-amz-meta-halcyon`, in Base64, because stores differ in what they allow
/// there. S3 limits metadata to 2 KB. The expiry is also the object's `Expires`, for caches that read the bucket.
///
/// Every call is one request (Amazon S3 API Reference: GetObject, HeadObject, PutObject, ListObjectsV2, DeleteObjects),
/// except for a list whose pages the store cuts short.
/// A bucket has no rule to delete objects by a time of their own, so expired objects are left to its lifecycle rules.
final class S3Storage: ObjectStorage {
    let isSwept = false
    private let options: S3Options
    private let bucket: String
    private let prefix: String
    private let client: CurlClient

    private static let recordHeader = "x-amz-meta-halcyon"
    /// The maximum size of a record in Base64: 2 KB without the name of the header.
    private static let longestRecord = 2000

    /// - Parameter prefix: The prefix of all names in the bucket; empty, or ending with `/`.
    init(_ options: S3Options, bucket: String, prefix: String, userAgent: String?) {
        self.options = options
        self.bucket = bucket
        self.prefix = prefix
        var settings = CurlSettings()
        settings.userAgent = userAgent
        // Most of them remain for reads while a store does not respond to writes.
        settings.maxConnectionsPerHost = 4 * ResultStore.writers
        client = CurlClient(settings)
    }

    func close() async { await client.close() }

    // MARK: Objects

    func read(_ name: String, upTo limit: Int) async throws(StorageError) -> StorageObject? {
        var request = request(.get, name)
        // Errors have bodies, too.
        request.maxBytes = max(limit, 1 << 16)
        let response = try await send(request)
        if response.isMissing { return nil }
        try check(response, "read", name)
        guard response.body.count <= limit else {
            throw StorageError(.tooLarge, "\(name) exceeds \(limit) bytes")
        }
        return StorageObject(
            body: response.body, mediaType: response.headers.first("Content-Type") ?? "", record: response.record)
    }

    func head(_ name: String) async throws(StorageError) -> StorageHead? {
        let response = try await send(request(.head, name))
        if response.status == 404 { return nil }
        try check(response, "read", name)
        let bytes = response.headers.first("Content-Length").flatMap { Int($0) } ?? 0
        return StorageHead(record: response.record, bytes: bytes)
    }

    func write(_ object: StorageObject, as name: String, isDurable: Bool) async throws(StorageError) {
        var request = request(.put, name)
        let record = Base64.encode(object.record)
        guard record.utf8.count <= Self.longestRecord else {
            throw StorageError(.tooLarge, "the metadata of \(name) exceeds the 2 KB that S3 allows")
        }
        request.body = object.body
        request.headers = ["Content-Type": object.mediaType]
        if !record.isEmpty { request.headers[Self.recordHeader] = record }
        if let end = object.expiresAt { request.headers["Expires"] = HTTPDate.text(of: end) }
        if object.isPrivate { request.headers["Cache-Control"] = "private" }
        try check(try await send(request), "write", name)
    }

    /// An object that a store has accepted is durable.
    func synchronize(_ name: String) async throws(StorageError) {}

    func remove(_ names: [String]) async throws(StorageError) {
        guard !names.isEmpty else { return }
        var request = HTTPRequest(.post, "\(options.url(ofBucket: bucket))?delete=")
        // Names contain no characters that XML would have to escape.
        let objects = names.map { "<Object><Key>\(prefix)\($0)</Key></Object>" }.joined()
        request.body = Array("<Delete><Quiet>true</Quiet>\(objects)</Delete>".utf8)
        request.headers = [
            "Content-Type": "application/xml",
            // Amazon requires a checksum here.
            "x-amz-sdk-checksum-algorithm": "SHA256",
            "x-amz-checksum-sha256": Base64.encode(SHA256.hash(request.body).bytes),
        ]
        let response = try await send(request)
        try check(response, "remove", "objects")
        guard let error = try document(response).children.first(where: { $0.name == "Error" }) else { return }
        throw StorageError(
            Self.kind(ofCode: error["Code"]?.text, status: 200),
            "cannot remove \(error["Key"]?.text ?? "objects"): \(error["Code"]?.text ?? "unknown error")")
    }

    // MARK: Lists

    func list(_ prefix: String, after last: String?) async throws(StorageError) -> [StorageEntry] {
        let page = try await options.list(
            in: bucket, prefix: self.prefix + prefix, after: last.map { self.prefix + $0 }, count: pageSize,
            atLeast: pageSize, error: { StorageError(.unavailable, $0) }
        ) { (url: String) async throws(StorageError) -> S3ObjectPage in
            let response = try await send(HTTPRequest(.get, url))
            try check(response, "list", prefix)
            return try readable { () throws(XMLError) in try S3ObjectPage(xml: response.body) }
        }
        return page.objects.filter { $0.key.hasPrefix(self.prefix) }.map { object in
            StorageEntry(
                name: String(object.key.dropFirst(self.prefix.count)), bytes: object.bytes, usedAt: object.changedAt,
                expiresAt: nil)
        }
    }

    func space() async throws(StorageError) -> StorageSpace? { nil }

    // MARK: Requests

    private func request(_ method: HTTPRequest.Method, _ name: String) -> HTTPRequest {
        HTTPRequest(method, "\(options.url(ofBucket: bucket))\(PercentEncoding.encode(prefix + name, keeping: "/"))")
    }

    private func send(_ request: HTTPRequest) async throws(StorageError) -> HTTPResponse {
        var request = request
        request.maxRedirects = 0
        request.acceptsCompression = false
        options.sign(&request)
        do throws(CurlError) {
            return try await client.execute(request)
        } catch {
            let kind: StorageError.Kind =
                switch error.code {
                case .cancelled, .closed: .cancelled
                case .tooLarge: .tooLarge
                case .badURL, .badRequest, .unsupportedScheme, .tls: .misconfigured
                default: .unavailable
                }
            throw StorageError(kind, "\(error)")
        }
    }

    private func check(_ response: HTTPResponse, _ operation: String, _ name: String) throws(StorageError) {
        guard response.status != 200 else { return }
        let code = response.s3ErrorCode
        throw StorageError(
            Self.kind(ofCode: code, status: response.status),
            "cannot \(operation) \(name): the object store returned \(response.status)\(code.map { " \($0)" } ?? "")")
    }

    private static func kind(ofCode code: String?, status: Int) -> StorageError.Kind {
        switch code {
        case "NoSuchBucket", "PermanentRedirect", "AuthorizationHeaderMalformed", "InvalidBucketName",
            "NotImplemented":
            return .misconfigured
        case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken",
            "RequestTimeTooSkewed":
            return .forbidden
        // Codes of MinIO and Ceph.
        case "XMinioStorageFull", "QuotaExceeded": return .full
        default: break
        }
        switch status {
        case 401, 403: return .forbidden
        case 507: return .full
        case 300..<500 where status != 408 && status != 429: return .misconfigured
        default: return .unavailable
        }
    }

    private func document(_ response: HTTPResponse) throws(StorageError) -> XMLElement {
        // DeleteObjects may have no response body in quiet mode.
        try readable { () throws(XMLError) in
            try XMLElement(document: response.body.isEmpty ? Array("<Empty/>".utf8) : response.body)
        }
    }

    private func readable<Value>(_ body: () throws(XMLError) -> Value) throws(StorageError) -> Value {
        do throws(XMLError) {
            return try body()
        } catch {
            throw StorageError(.unavailable, "the object store returned invalid XML: \(error)")
        }
    }
}

extension HTTPResponse {
    /// True if there is no such object. A missing bucket is an error.
    fileprivate var isMissing: Bool { status == 404 && s3ErrorCode != "NoSuchBucket" }

    /// The record of an object; empty if another program wrote it.
    fileprivate var record: [UInt8] { headers.first("x-amz-meta-halcyon").flatMap { Base64.decode($0) } ?? [] }
}
