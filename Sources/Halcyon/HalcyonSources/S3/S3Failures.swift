import Curl
import HalcyonModel

extension Failure {
    /// What a store's answer without an object means for a job: by its error code (Amazon S3 API Reference, Error
    /// responses), else by its status.
    init(store response: HTTPResponse, _ object: S3Source) {
        let code = response.errorCode
        let message = "the store answered \(response.status)\(code.map { " \($0)" } ?? "") for \(object.text)"
        switch code {
        case "NoSuchKey", "NoSuchBucket", "NoSuchVersion": self.init(.notFound, message)
        case "AccessDenied", "AllAccessDisabled", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken",
            "ExpiredToken", "RequestTimeTooSkewed", "InvalidObjectState":
            self.init(.forbidden, message)
        case "SlowDown", "RequestTimeout", "InternalError", "ServiceUnavailable":
            self.init(.httpError, message, isRetryable: true, retryAfter: Failure(response).retryAfter)
        case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed":
            let region = response.headers.first("x-amz-bucket-region").map { ", which is \($0)" } ?? ""
            self.init(
                .providerError, "\(message); sources.s3.region must be the bucket's\(region)",
                isRetryable: code == "TemporaryRedirect")
        default:
            self.init(response)
            // Of a version that is a mark of a deletion.
            if response.status == 405 { self.code = .gone }
            self.message = message
        }
        forbidsStaleUse = isRetryable && !response.allowsStaleUse
    }
}

extension HTTPResponse {
    /// What stands in the first element `Code` of an error's XML.
    fileprivate var errorCode: String? {
        let text = String(decoding: body.prefix(4096), as: UTF8.self)
        guard let start = text.firstRange(of: "<Code>")?.upperBound,
            let end = text[start...].firstRange(of: "</Code>")?.lowerBound
        else { return nil }
        let code = text[start..<end]
        return (1...64).contains(code.utf8.count) && code.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }
            ? String(code) : nil
    }
}
