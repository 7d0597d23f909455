/// What a lease is about: one product that one worker at a time makes, such as a result or a source.
///
/// It is named by the key under which the product is kept. The keys of the lease stand in the product's slot of a Redis Cluster.
///
/// | key | holds |
/// |---|---|
/// | `halcyon:{S}:lease:ITEM` | who makes it: `PROCESS:ATTEMPT:FENCE:LEVEL`; it goes by itself |
/// | `halcyon:{S}:waiters:ITEM` | who waits for it, `PROCESS:ATTEMPT`: a sorted set by when they last asked, in milliseconds |
/// | `halcyon:{S}:fences` | of all items of the source: `last`, the highest fence given; `floor` and `floor:ITEM`, below which nothing may be stored any more; `deaths:ITEM`, how many attempts at it never ended |
public struct LeaseName: Hashable, Sendable {
    /// The key of the product.
    public let product: String
    private let tag: Substring
    /// The last part of the product's key.
    public let item: Substring

    /// - Parameter product: a key `PREFIX{TAG}:ITEM`.
    public init(product: String) {
        guard let brace = product.firstIndex(of: "}") else {
            preconditionFailure("the key of a product needs a hash tag: \(product)")
        }
        self.product = product
        tag = product[...brace]
        item = product[brace...].dropFirst(2)
    }

    var lease: String { "\(tag):lease:\(item)" }
    var waiters: String { "\(tag):waiters:\(item)" }
    /// The fences of all items of one source.
    public var fences: String { "\(tag):fences" }
}

/// That this process makes a product for now.
public struct Lease: Hashable, Sendable {
    /// What it makes.
    public let name: LeaseName
    /// Who it is: the process and the attempt, new for each.
    public let owner: String
    /// Rises with each lease of a source: what was made under an older one overwrites nothing newer.
    public let fence: Int
    /// How many attempts at it had leases before this one and never ended them: their process died or hung in the middle, or stood still
    /// for so long that the lease ran out. Forgotten when one comes to an end that shows that it can be made or cannot, when it is
    /// purged, and with the fences.
    public let deaths: Int
}

/// What a process knows already of a product that it wants.
public enum Seen: Hashable, Sendable {
    /// That it is not there.
    case nothing
    /// A version that is of no use, with its fence; a newer one may be.
    case version(Int)
    /// Whatever is there, it is to be made anew.
    case anything
}

/// What a worker is told that wants a product.
public enum LeaseAnswer: Hashable, Sendable {
    /// It is there, or a newer version than was seen.
    case there
    /// Make it.
    case mine(Lease)
    /// Another attempt is at it.
    case held(Holder)
    /// Nobody can be asked: make it, unprotected.
    case without
}

/// Who makes a product at present.
public struct Holder: Hashable, Sendable {
    /// The process and the attempt.
    public let owner: String
    /// The lease's fence.
    public let fence: Int
    /// When the lease ends, if it is not renewed.
    public let left: Duration
}
