import CCrypto

/// libcrypto as a whole.
public enum DigestsLibrary {
    /// The version that runs, such as `3.0.17`.
    public static var version: String { String(cString: OpenSSL_version(OPENSSL_VERSION_STRING)) }
}
