import Foundation

/// Files of the repository that tests use where they are.
public enum Repository {
    /// Returns the path of a file or folder.
    ///
    /// - Parameter name: The path relative to the repository.
    public static func path(_ name: String) -> String {
        URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../\(name)").standardized.path
    }

    /// Returns the content of a file.
    ///
    /// - Parameter name: The path relative to the repository.
    /// - Throws: An error of Foundation if the file cannot be read.
    public static func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: path(name))))
    }

    /// Returns the content of a text file.
    ///
    /// - Parameter name: The path relative to the repository.
    /// - Throws: An error of Foundation if the file cannot be read.
    public static func text(_ name: String) throws -> String {
        String(decoding: try bytes(name), as: UTF8.self)
    }
}
