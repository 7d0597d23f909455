import Curl
import HalcyonModel

extension WebProvider {
    /// Puts bytes at a URL (RFC 9110, section 9.3.4); any answer of the 200s says that they are there. Redirects are not followed: what a
    /// URL was signed for holds nowhere else.
    /// - Throws: ``Failure`` that names the host and nothing else of the URL, which may be a secret; `CancellationError`.
    func put(_ body: [UInt8], mediaType: String, at url: WebURL) async throws {
        let place = "putting the result at \(url.host)"
        let transfer: Transfer
        do {
            transfer = try await self.transfer(url) { request in
                request.method = .put
                request.headers = ["Content-Type": mediaType]
                request.body = body
                // Who has taken it may think about it for as long as there is time.
                request.stall = nil
            }
        } catch let failure as Failure {
            throw failure.within(place)
        }
        switch transfer {
        case .broken(let failure, _): throw failure.within(place)
        case .whole(let response):
            guard !(200...299).contains(response.status) else { return }
            var failure = Failure(response)
            (failure.code, failure.message) = (.httpError, "it answered \(response.status)")
            throw failure.within(place)
        }
    }
}
