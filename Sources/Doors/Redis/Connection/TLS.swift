import CHiredis

/// What every TLS connection of a client shares: the system's trusted authorities and the name the certificate must bear.
///
/// Not `Sendable`: it belongs to the loop's thread.
final class TLS {
    let context: UnsafeMutableRawPointer

    /// - Throws: ``RedisError/Code/unavailable`` when OpenSSL refuses the set-up.
    init(serverName: String) throws(RedisError) {
        guard let made = chiredis_tls_create(serverName) else { throw RedisError(.unavailable, "cannot set up TLS") }
        context = made
    }

    deinit { chiredis_tls_free(context) }
}
