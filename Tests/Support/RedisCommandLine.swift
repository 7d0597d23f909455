/// redis-cli.
enum RedisCommandLine {
    /// - Parameter authority: whom to trust; with it redis-cli speaks TLS.
    /// - Returns: what it printed.
    /// - Throws: ``NotInTime`` when it fails.
    static func run(_ arguments: [String], authority: String? = nil) async throws -> String {
        let secure = authority.map { ["--tls", "--cacert", $0] } ?? []
        return try await ProgramOutput.of("redis-cli", secure + arguments)
    }
}
