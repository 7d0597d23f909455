import HalcyonModel
import Threads
import Vips

/// Draws avatars.
struct InitialsProvider: SourceProvider {
    /// Where they are drawn: libvips is not for the threads of tasks.
    let pool: ThreadPool

    /// - Throws: ``Failure`` `provider_error`; `CancellationError` when the pool is closed.
    func fetch(_ initials: Initials, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        do {
            let file = try await pool.run {
                guard Fonts.areThere else { throw NoFonts() }
                return try Avatar(initials: initials).png()
            }
            // The same initials always look the same, as long as the fonts do.
            return .loaded(LoadedSource(body: file, lifetime: .unchanging))
        } catch is ThreadPoolClosed {
            throw CancellationError()
        } catch {
            throw Failure(
                .providerError, "the initials could not be drawn: \(error)", isRetryable: false, cause: error)
        }
    }
}

private struct NoFonts: Error, CustomStringConvertible {
    var description: String { "this machine has no fonts; install some, such as Debian's fonts-dejavu-core" }
}
