import Foundation
import Testing

private struct VectorFile<Vector: Decodable>: Decodable {
    let vectors: [Vector]
}

/// Reads published vectors with Foundation, an independent parser.
func vectors<Vector: Decodable>(_ name: String, as type: Vector.Type = Vector.self) throws -> [Vector] {
    let url = try #require(Bundle.module.url(forResource: name, withExtension: "json", subdirectory: "Vectors"))
    return try JSONDecoder().decode(VectorFile<Vector>.self, from: Data(contentsOf: url)).vectors
}
