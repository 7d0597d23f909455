import CHiredis

/// hiredis as a whole.
public enum RedisLibrary {
    /// The version that this was built with, such as `0.14.1`: the library cannot be asked, and another series is
    /// another file.
    public static var version: String { "\(HIREDIS_MAJOR).\(HIREDIS_MINOR).\(HIREDIS_PATCH)" }
    /// Whether it can do TLS.
    public static var hasTLS: Bool { Connection.hasTLS }
}
