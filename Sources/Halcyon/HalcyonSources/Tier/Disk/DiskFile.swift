import Digests
import Glibc

/// An entry as a file: what it is called, when it was kept and for how long, what it is, and its bytes, under a checksum.
///
/// All numbers have their lowest byte first:
///
///     8 bytes   HALCYON1
///     32        SHA-256 of all that follows
///     8, 8      when it was kept and for how long, in milliseconds, the first since 1970
///     4, 4      the lengths of the next two
///     …         the key, what the entry is (JSON), the source's bytes
struct DiskFile: Sendable {
    private static let magic = Array("HALCYON1".utf8)
    private static let headSize = 64

    let key: String
    let keptAt: Double
    let lifetime: Double
    let entry: SourceEntry

    /// The whole file.
    var bytes: [UInt8] {
        let (key, description) = (Array(key.utf8), entry.description)
        var rest: [UInt8] = []
        rest.reserveCapacity(24 + key.count + description.count + entry.body.count)
        for number in [keptAt, lifetime] { rest.append(Int64((number * 1000).rounded())) }
        for count in [key.count, description.count] { rest.append(Int32(count)) }
        rest += key
        rest += description
        rest += entry.body
        return Self.magic + SHA256.hash(rest).bytes + rest
    }

    /// Takes the values as they are.
    init(key: String, keptAt: Double, lifetime: Double, entry: SourceEntry) {
        self.key = key
        self.keptAt = keptAt
        self.lifetime = lifetime
        self.entry = entry
    }

    /// Nil for a file that is not whole, or not one of these.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.headSize, bytes.starts(with: Self.magic) else { return nil }
        let rest = Array(bytes[40...])
        guard SHA256.hash(rest).bytes.elementsEqual(bytes[8..<40]) else { return nil }
        let (keyLength, descriptionLength) = (rest.integer(at: 16, bytes: 4), rest.integer(at: 20, bytes: 4))
        let bodyStart = 24 + keyLength + descriptionLength
        guard keyLength >= 0, descriptionLength >= 0, bodyStart <= rest.count,
            let entry = SourceEntry(
                description: Array(rest[(24 + keyLength)..<bodyStart]), body: Array(rest[bodyStart...]))
        else { return nil }
        key = String(decoding: rest[24..<24 + keyLength], as: UTF8.self)
        keptAt = Double(rest.integer(at: 0, bytes: 8)) / 1000
        lifetime = Double(rest.integer(at: 8, bytes: 8)) / 1000
        self.entry = entry
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }

    fileprivate func integer(at place: Int, bytes count: Int) -> Int {
        self[place..<place + count].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
