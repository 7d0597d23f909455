/// A preset by its name and version. In a job it requests this version or a newer one, in an event it names the version
/// that was used.
public struct PresetReference: Hashable, Sendable {
    /// The highest version, 2^53. All JSON parsers represent integers up to it exactly.
    public static let highestVersion: Int64 = 1 << 53

    /// The name of the preset.
    public var name: String
    /// The version, from 1; nil in a job that accepts any version.
    public var version: Int64?

    /// Creates a reference without validating the values.
    /// - Parameters:
    ///   - name: The name of the preset.
    ///   - version: The version; nil for any.
    public init(_ name: String, version: Int64? = nil) {
        self.name = name
        self.version = version
    }

    /// Returns true if the text is a valid name of a preset: 1 to 64 letters, digits, dots, hyphens and underscores, the
    /// first of them a letter or a digit, as in names of variants. `only` is reserved for the setting `presets.only`.
    public static func isName(_ text: String) -> Bool { Job.isVariantName(text) && text != "only" }
}
