import Hashing

/// The encoding of ``CompletedRanges`` in the metadata of a commit: `e1.CHECKSUM.LENGTHS`.
///
/// - `e1` is the version. Text with another prefix was written by another program or version.
/// - The checksum is the first eight hexadecimal digits of the SHA-256 of `e1.OFFSET.LENGTHS`, where OFFSET is the
///   committed offset. Text that was truncated, changed or stored with another offset is ignored.
/// - The lengths are those of alternating ranges from the committed offset on: incomplete, completed, and so on. Each
///   is a number in base 32, least significant digit first. The characters `A` to `f` are final digits, `g` to `_` are
///   digits that others follow (the alphabet of base64url). A single gap in a hundred offsets takes three characters.
///
/// The text is printable ASCII, because all brokers and clients return only that unchanged.
struct CommitMetadata: Sendable, Equatable {
    /// The text to commit; empty if there are no completed ranges to store.
    let text: String
    /// The number of completed offsets at the upper end that did not fit. They are redelivered if the partition is
    /// revoked now.
    let untracked: Int

    private static let version = "e1"

    /// Encodes the metadata of a committed offset.
    /// - Parameter lengths: the encoded lengths, which are not validated.
    static func seal(_ lengths: String, at offset: Int64) -> String {
        "\(version).\(checksum(of: lengths, at: offset)).\(lengths)"
    }

    private static func checksum(of lengths: some StringProtocol, at offset: Int64) -> Substring {
        SHA256.hash(Array("\(version).\(offset).\(lengths)".utf8)).description.prefix(checksumLength)
    }

    fileprivate static let checksumLength = 8
    /// The number of characters in addition to the lengths.
    fileprivate static let frame = version.utf8.count + checksumLength + 2

    /// Decodes the lengths of a text; nil if it is invalid or belongs to another offset.
    fileprivate static func open(_ text: String, at offset: Int64) -> Substring? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == version, parts[1] == checksum(of: parts[2], at: offset) else { return nil }
        return parts[2]
    }
}

extension CompletedRanges {
    /// Encodes the ranges as commit metadata.
    /// - Parameter limit: the maximum number of characters. Ranges that do not fit are omitted from the upper end.
    ///   Their records may be redelivered, but are never lost.
    func commitMetadata(limit: Int) -> CommitMetadata {
        var lengths: [UInt8] = []
        var end = base
        var told = 0
        for run in runs {
            let length = lengths.count
            Base32.append(run.lowerBound - end, to: &lengths)
            Base32.append(Int64(run.count), to: &lengths)
            guard CommitMetadata.frame + lengths.count <= limit else {
                lengths.removeSubrange(length...)
                break
            }
            end = run.upperBound
            told += 1
        }
        let untracked = runs[told...].reduce(0) { $0 + $1.count }
        guard told > 0 else { return CommitMetadata(text: "", untracked: untracked) }
        return CommitMetadata(
            text: CommitMetadata.seal(String(decoding: lengths, as: UTF8.self), at: base), untracked: untracked)
    }

    /// The offset below which the metadata and the committed offset report every completed offset.
    func toldEnd(_ commitMetadata: CommitMetadata) -> Int64 {
        var untracked = commitMetadata.untracked
        return runs.last { run in
            defer { untracked -= run.count }
            return untracked == 0
        }?.upperBound ?? base
    }

    /// Decodes the metadata that was committed with the offset `base`.
    /// - Returns: nil for any text that ``commitMetadata(limit:)`` did not write for this offset. No completed offset is known in
    ///   that case.
    init?(commitMetadata text: String, at base: Int64) {
        guard base >= 0, let lengths = CommitMetadata.open(text, at: base) else { return nil }
        self.init(from: base)
        var digits = Array(lengths.utf8)[...]
        var end = base
        while !digits.isEmpty {
            guard let gap = Base32.removeFirst(from: &digits), let count = Base32.removeFirst(from: &digits),
                // The encoding is unique: only the first gap may be empty.
                gap > 0 || end == base && runs.isEmpty, count > 0
            else { return nil }
            let (start, startOverflows) = end.addingReportingOverflow(gap)
            let (stop, stopOverflows) = start.addingReportingOverflow(count)
            guard !startOverflows, !stopOverflows else { return nil }
            append(start..<stop)
            end = stop
        }
        guard !runs.isEmpty else { return nil }
    }
}

/// A base 32 encoding of numbers in which the upper half of the alphabet marks digits that others follow.
private enum Base32 {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    private static let values: [UInt8: UInt64] = Dictionary(
        uniqueKeysWithValues: digits.enumerated().map { ($1, UInt64($0)) })

    static func append(_ number: Int64, to text: inout [UInt8]) {
        var release = Int(number)
        while release >= 32 {
            text.append(digits[32 + release % 32])
            release /= 32
        }
        text.append(digits[release])
    }

    /// Decodes a number; nil if the text does not start with the unique encoding of a number of 63 bits.
    static func removeFirst(from text: inout ArraySlice<UInt8>) -> Int64? {
        var number: UInt64 = 0
        var shift: UInt64 = 0
        while let character = text.popFirst() {
            guard let value = values[character] else { return nil }
            let digit = value % 32
            guard shift < 60 || (shift == 60 && digit < 8) else { return nil }
            number |= digit << shift
            if value < 32 { return digit == 0 && shift > 0 ? nil : Int64(number) }
            shift += 5
        }
        return nil
    }
}

/// The completed offsets of a partition, from the committed offset on. A pure value.
///
/// They are committed together with the offset, so that the next owner of the partition does not repeat completed work.
/// ``commitMetadata(limit:)`` encodes them.
struct CompletedRanges: Sendable, Equatable {
    /// The committed offset. All lower offsets are completed too.
    let base: Int64
    /// The completed ranges from there on, in ascending order, neither empty nor adjacent.
    private(set) var runs: [Range<Int64>] = []

    /// Creates a value without completed offsets beyond `base`.
    init(from base: Int64) { self.base = base }

    /// True if the offset is completed.
    func contains(_ offset: Int64) -> Bool {
        if offset < base { return true }
        // Finds the first range that does not lie entirely below the offset.
        var (low, high) = (0, runs.count)
        while low < high {
            let middle = (low + high) / 2
            if runs[middle].upperBound <= offset { low = middle + 1 } else { high = middle }
        }
        return low < runs.count && runs[low].contains(offset)
    }

    /// Adds completed offsets. Offsets below the end of the last range are ignored, and an empty range adds nothing.
    mutating func append(_ run: Range<Int64>) {
        let lower = max(run.lowerBound, runs.last?.upperBound ?? base)
        guard lower < run.upperBound else { return }
        if let last = runs.last, last.upperBound == lower {
            runs[runs.count - 1] = last.lowerBound..<run.upperBound
        } else {
            runs.append(lower..<run.upperBound)
        }
    }
}
