/// The command line client of Redis, redis-cli.
enum RedisCommandLine {
    /// Runs redis-cli and returns its output.
    /// - Parameter authority: The PEM file of a trusted certificate authority, which enables TLS; nil for plain TCP.
    /// - Throws: ``ConditionTimeout`` if it fails.
    static func run(_ arguments: [String], authority: String? = nil) async throws -> String {
        let secure = authority.map { ["--tls", "--cacert", $0] } ?? []
        return try await ProgramOutput.of("redis-cli", secure + arguments)
    }
}
