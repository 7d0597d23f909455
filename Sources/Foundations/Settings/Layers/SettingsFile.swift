import Glibc

/// A YAML file with settings: mappings in mappings, whose names are joined by dots, with scalars and lists of scalars.
public struct SettingsFile: Sendable {
    /// For errors and origins, as the user spelt it.
    public let name: String
    let bytes: [UInt8]

    /// Larger files are refused: no settings are that large, and YAML can be slow to read.
    public static let maximumSize = 1 << 20

    /// A text that is there already.
    /// - Throws: ``SettingsError`` of code `unreadableFile` when it has more than ``maximumSize`` bytes.
    public init(name: String, bytes: [UInt8]) throws(SettingsError) {
        guard bytes.count <= Self.maximumSize else {
            throw SettingsError(.unreadableFile, "\(name): more than \(Self.maximumSize) bytes", nil)
        }
        self.name = name
        self.bytes = bytes
    }

    /// Reads a file.
    /// - Throws: ``SettingsError`` of code `unreadableFile` when there is none, it cannot be read, or it is too large.
    public init(path: String) throws(SettingsError) {
        guard let file = fopen(path, "re") else {
            throw SettingsError(.unreadableFile, "cannot open \(path): \(String(cString: strerror(errno)))", nil)
        }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: Self.maximumSize + 1)
        let count = fread(&bytes, 1, bytes.count, file)
        guard ferror(file) == 0 else {
            throw SettingsError(.unreadableFile, "cannot read \(path): \(String(cString: strerror(errno)))", nil)
        }
        try self.init(name: path, bytes: Array(bytes.prefix(count)))
    }
}
