import CSimdJSON
import Glibc

/// The name of an object's member, compared with literals without making a `String`:
///
///     try object.forEachMember { name, value throws(JSONError) in
///         switch name {
///         case "width": width = try value.double()
///         default: throw JSONError(.unknown, "is no field of a size")
///         }
///     }
public struct JSONName: CustomStringConvertible {
    private let document: JSONDocument
    private let name: csj_string

    init(_ document: JSONDocument, _ name: csj_string) {
        self.document = document
        self.name = name
    }

    /// The name itself.
    public var description: String { withExtendedLifetime(document) { String(name) } }

    /// Whether the name is `literal`, byte by byte.
    public static func ~= (literal: StaticString, name: JSONName) -> Bool {
        guard literal.utf8CodeUnitCount == name.name.length else { return false }
        return withExtendedLifetime(name.document) { memcmp(literal.utf8Start, name.name.bytes, name.name.length) == 0 }
    }
}
