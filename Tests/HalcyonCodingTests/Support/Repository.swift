import Foundation

/// Files of the repository that the tests hold the code to.
enum Repository {
    /// Of a file or folder, given from the top of the repository.
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
