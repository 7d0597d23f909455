import Foundation

/// Files of the repository that tests compare with the code.
enum Repository {
    /// The path of a file or folder, given relative to the repository.
    static func path(_ name: String) -> String {
        // Tests/HalcyonCodingTests/Support/Repository.swift
        var url = URL(fileURLWithPath: #filePath)
        for _ in 0..<4 { url.deleteLastPathComponent() }
        return url.appendingPathComponent(name).path
    }

    static func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path(name))))
    }

    static func text(_ name: String) throws -> String {
        String(decoding: try bytes(name), as: UTF8.self)
    }
}
