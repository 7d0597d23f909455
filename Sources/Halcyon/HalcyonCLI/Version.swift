/// The version of Halcyon.
enum Version {
    /// The semantic version number.
    static let number = "0.1.0"
}
