import TestSupport

/// An nginx that serves photographs, each under as many names as are wanted: nothing is stored yet of what was never named.
public final class PhotographServer: Sendable {
    /// How many there are.
    public let count: Int
    private let nginx: Nginx
    private let folder: TemporaryFolder

    /// Starts it.
    public init(_ photographs: [[UInt8]]) async throws {
        count = photographs.count
        folder = TemporaryFolder("photographs")
        for (number, bytes) in photographs.enumerated() { _ = folder.write(bytes, to: "\(number).jpg") }
        nginx = try await Nginx.start(serving: folder.path, "expires 1h; access_log off;")
    }

    /// A name of its own for each number and tag, for one photograph after the other.
    public func url(_ number: Int, _ tag: String) -> String {
        "\(nginx.url)/\(number % count).jpg?\(tag)\(number / count)"
    }

    /// Ends it, and removes the photographs.
    public func remove() async {
        await nginx.stop()
        await folder.remove()
    }
}
