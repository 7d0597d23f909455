import CCurl

/// libcurl as a whole.
public enum CurlLibrary {
    /// The version that runs, such as `7.88.1`.
    public static var version: String { String(cString: ccurl_version()) }
}
