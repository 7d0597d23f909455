import CHiredis

/// What every TLS connection of a client shares: whom it trusts, and the host that the certificate must be good for.
///
/// Not `Sendable`: it belongs to the loop's thread.
final class TLS {
    let context: UnsafeMutableRawPointer
    let host: String

    /// - Parameters:
    ///   - authorities: a PEM file; nil for the system's.
    /// - Throws: ``RedisError/Code/unavailable`` when OpenSSL refuses the set-up.
    init(host: String, authorities: String?) throws(RedisError) {
        guard let made = chiredis_tls_create(authorities) else {
            throw RedisError(.unavailable, "cannot set up TLS with the authorities of \(authorities ?? "the system")")
        }
        context = made
        self.host = host
    }

    deinit { chiredis_tls_free(context) }
}
