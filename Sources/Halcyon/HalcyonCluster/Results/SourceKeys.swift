import HalcyonLeases

/// What the parts are called that Redis keeps of one source of one tenant, all in one slot.
struct SourceKeys: Hashable, Sendable {
    /// `halcyon:{…}:`
    private let stem: String

    /// - Parameter sourceHash: what stands between the braces.
    init(sourceHash: String) { stem = "halcyon:{\(sourceHash)}:" }

    /// Of the source that a result was made from.
    /// - Parameter key: the result's, `halcyon:{…}:…`, or that of a hand-off.
    init(of key: String) {
        let end = key.utf8.firstIndex(of: UInt8(ascii: "}")) ?? key.endIndex
        stem = "\(key[..<end])}:"
    }

    /// Its results' names by their expiry.
    var results: String { stem + "results" }
    /// The source as the source tier keeps it.
    var source: String { stem + "source" }
    /// What may be stored: the fences of work under way, and below which of them nothing is stored any more.
    var fences: String { LeaseName(product: source).fences }
    /// The key of the result of this name.
    func result(_ name: String) -> String { stem + name }
}
