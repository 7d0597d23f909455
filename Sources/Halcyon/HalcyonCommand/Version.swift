/// Which Halcyon this is.
enum Version {
    /// By semantic versioning.
    static let number = "0.1.0"
}
