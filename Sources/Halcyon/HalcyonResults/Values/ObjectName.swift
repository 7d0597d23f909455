import HalcyonModel
import Hashing

/// The names of objects in the result store.
///
///     results/3f/3fa1…/9b04…              a result: the hashes of its source and of its variant
///     files/…                             the file of a result, by a template (``FileNameTemplate``)
///     index/tag/77/77c0…/3fa1….9b04…      a result under a tag, without content
///     index/tenant/…                      the same for a tenant
///     purges/tag/77c0….1764115200000000   a purge and its time in microseconds since 1970, without content
///     probes/…                            an object that `halcyon doctor` writes and deletes
///
/// The results of a source have a prefix of their own, so that a purge finds them without an index. With a template the
/// content of the result is the name of its file.
enum ObjectName {
    static let results = "results/"
    static let files = "files/"
    static let purges = "purges/"
    static let index = "index/"
    static let probes = "probes/"

    /// The name of a result.
    static func result(_ key: ResultKey) -> String { "\(results(of: key.sourceHash))\(key.variantHash)" }

    private static func results(of sourceHash: String) -> String { "\(results)\(sourceHash.prefix(2))/\(sourceHash)/" }

    /// The maximum length of a name in bytes: that of S3.
    static let longest = 1024

    /// The name of the object with a file from the content of its result; nil if it is not a name of a file.
    static func file(_ content: [UInt8]) -> String? {
        let name = String(decoding: content, as: UTF8.self)
        return FileNameTemplate.isName(name) ? files + name : nil
    }

    /// The name of the entry for a result in an index.
    static func entry(_ key: ResultKey, in scope: PurgeScope) -> String {
        "\(prefix(of: scope))\(key.sourceHash).\(key.variantHash)"
    }

    /// The prefix of what a purge has to delete: the results of a source, or the index entries of a tag or tenant.
    static func prefix(of scope: PurgeScope) -> String {
        scope.isIndexed
            ? "\(index)\(scope.kind.rawValue)/\(scope.hash.prefix(2))/\(scope.hash)/" : results(of: scope.hash)
    }

    /// The key of a result by the name of its object or of one of its index entries; nil for another name.
    static func key(of name: String) -> ResultKey? {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        if parts.count == 4, parts[0] == "results" { return ResultKey("halcyon:{\(parts[2])}:\(parts[3])") }
        guard parts.count == 5, parts[0] == "index" else { return nil }
        let hashes = parts[4].split(separator: ".", omittingEmptySubsequences: false)
        return hashes.count == 2 ? ResultKey("halcyon:{\(hashes[0])}:\(hashes[1])") : nil
    }

    /// The name of a tombstone. It contains all that is known about the purge, so that a list is enough to read it.
    static func tombstone(_ scope: PurgeScope, at time: Int64) -> String { "\(purges)\(scope).\(time)" }

    /// The scope and the time of a tombstone; nil for another name.
    static func purge(ofTombstone name: String) -> (scope: PurgeScope, time: Int64)? {
        guard name.hasPrefix(purges), let point = name.lastIndex(of: "."),
            let time = Int64(name[name.index(after: point)...]),
            let scope = PurgeScope(name[..<point].dropFirst(purges.count))
        else { return nil }
        return (scope, time)
    }
}

/// The results that a purge removes. It contains hashes only, because names of tags and tenants may be secret or longer
/// than a name may be.
struct PurgeScope: Hashable, Sendable {
    enum Kind: String, CaseIterable, Sendable {
        case source, key, tag, tenant
    }

    let kind: Kind
    /// Hexadecimal digits.
    let hash: String

    private init(_ kind: Kind, _ hash: String) {
        self.kind = kind
        self.hash = hash
    }

    /// All results of a source.
    static func source(_ hash: String) -> PurgeScope { PurgeScope(.source, hash) }

    /// A single result.
    static func key(_ key: ResultKey) -> PurgeScope { PurgeScope(.key, key.sourceHash + key.variantHash) }

    /// The results that jobs of a tenant with this tag have created or hit.
    static func tag(_ tag: String, of tenant: String?) -> PurgeScope {
        PurgeScope(.tag, digest("\(tenant.map { "\($0.utf8.count):\($0)" } ?? "")/\(tag)"))
    }

    /// All results of a tenant.
    static func tenant(_ tenant: String) -> PurgeScope { PurgeScope(.tenant, digest(tenant)) }

    /// True if the results of the scope have entries in an index.
    var isIndexed: Bool { kind == .tag || kind == .tenant }

    /// The key of a single result; nil for another kind.
    var resultKey: ResultKey? {
        kind == .key ? ResultKey("halcyon:{\(hash.prefix(32))}:\(hash.dropFirst(32))") : nil
    }

    /// Parses a ``description``; nil for another text.
    init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let kind = Kind(rawValue: String(parts[0])), (32...64).contains(parts[1].utf8.count),
            parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else { return nil }
        self.init(kind, String(parts[1]))
    }

    /// The number of characters of ``compact``.
    static let compactLength = 23

    /// The scope of a tag or a tenant in 23 characters: the first letter of its kind, and its hash in Base64.
    var compact: String {
        let bytes = stride(from: 0, to: 32, by: 2).map { place in
            UInt8(hash.dropFirst(place).prefix(2), radix: 16) ?? 0
        }
        return (kind == .tag ? "t" : "n") + Base64.encode(bytes).prefix(22)
    }

    /// Parses ``compact``; nil for another text.
    init?(compact text: String) {
        guard let kind = ["t": Kind.tag, "n": Kind.tenant][text.prefix(1)],
            let bytes = Base64.decode(text.dropFirst() + "=="), bytes.count == 16
        else { return nil }
        self.init(kind, bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())
    }

    private static func digest(_ text: String) -> String {
        String(SHA256.hash(Array(text.utf8)).description.prefix(32))
    }
}

extension PurgeScope: CustomStringConvertible {
    /// The kind and the hash, such as `tag/77c0…`.
    var description: String { "\(kind.rawValue)/\(hash)" }
}
