import Curl
import HalcyonModel

extension WebProvider {
    /// Puts bytes at a URL (RFC 9110, section 9.3.4); any answer of the 200s says that they are there. Redirects are not followed: what a
    /// URL was signed for holds nowhere else.
    /// - Throws: ``Failure`` that names the host and nothing else of the URL, which may be a secret; `CancellationError`.
    func put(_ body: [UInt8], mediaType: String, at url: WebURL) async throws {
        do {
            let response = try await transfer(url) { request in
                request.method = .put
                request.headers = ["Content-Type": mediaType]
                request.body = body
                // Who has taken it may think about it for as long as there is time.
                request.stall = nil
            }.get()
            guard !(200...299).contains(response.status) else { return }
            var failure = Failure(response)
            (failure.code, failure.message) = (.httpError, "it answered \(response.status)")
            throw failure
        } catch let failure as Failure {
            throw failure.within("putting the result at \(url.host)")
        }
    }
}
