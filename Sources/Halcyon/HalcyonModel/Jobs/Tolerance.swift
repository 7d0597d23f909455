/// What of a damaged source is rendered all the same.
public enum Tolerance: String, CaseIterable, Codable, Sendable {
    /// Nothing: damage is a failure.
    case strict
    /// What there is of a JPEG, PNG or GIF that ends too early.
    case truncated
}
