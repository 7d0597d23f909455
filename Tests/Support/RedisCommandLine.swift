import Glibc
import Processes

/// redis-cli.
enum RedisCommandLine {
    /// - Parameter authority: whom to trust; with it redis-cli speaks TLS.
    /// - Returns: what it printed.
    /// - Throws: ``NotInTime`` when it fails.
    static func run(_ arguments: [String], authority: String? = nil) async throws -> String {
        // A file and no pipe: when the program has ended, all that it wrote is there.
        guard let file = tmpfile() else { throw NotInTime(description: "no temporary file: errno \(errno)") }
        defer { fclose(file) }
        let secure = authority.map { ["--tls", "--cacert", $0] } ?? []
        var options = ChildProcess.Options()
        options.output = .descriptor(fileno(file))
        let exit = try await ChildProcess.start("redis-cli", secure + arguments, options: options).exit()
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1 << 14)
        while case let count = pread(fileno(file), &part, part.count, bytes.count), count > 0 {
            bytes += part[..<count]
        }
        let text = String(decoding: bytes, as: UTF8.self)
        guard exit == .code(0) else { throw NotInTime(description: "redis-cli \(arguments): \(exit): \(text)") }
        return text
    }
}
