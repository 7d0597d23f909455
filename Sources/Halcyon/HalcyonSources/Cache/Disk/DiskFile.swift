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
        let checksum = bytes.withUnsafeBytes { SHA256.hash(UnsafeRawBufferPointer(rebasing: $0[40...])) }
        guard checksum.bytes.elementsEqual(bytes[8..<40]) else { return nil }
        let (keyLength, descriptionLength) = (bytes.integer(at: 56, bytes: 4), bytes.integer(at: 60, bytes: 4))
        let descriptionStart = Self.headSize + keyLength
        let bodyStart = descriptionStart + descriptionLength
        guard bodyStart <= bytes.count,
            let entry = SourceEntry(
                description: Array(bytes[descriptionStart..<bodyStart]), body: Array(bytes[bodyStart...]))
        else { return nil }
        key = String(decoding: bytes[Self.headSize..<descriptionStart], as: UTF8.self)
        keptAt = Double(bytes.integer(at: 40, bytes: 8)) / 1000
        lifetime = Double(bytes.integer(at: 48, bytes: 8)) / 1000
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
