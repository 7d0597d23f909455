import Digests

/// The text of an ``OffsetMap`` in the metadata of a commit: `e1.CHECKSUM.LENGTHS`.
///
/// - `e1` is the version. Text that does not begin with it is another's, or another version's.
/// - The checksum is the first eight hexadecimal digits of the SHA-256 of `e1.OFFSET.LENGTHS`, where OFFSET is the committed offset:
///   a text that was cut, changed or put beside another offset does not count.
/// - The lengths are those of what has not ended and of what has, in turn, from the committed offset on. Each is a number to the base of
///   32, its least digit first; `A` to `f` are the digits after which it ends, `g` to `_` those after which it goes on (the order is that
///   of base64url). So a single hole in a hundred offsets takes three characters.
///
/// All of it is printable ASCII: that alone comes back from every broker and client as it was committed.
struct OffsetNote: Sendable, Equatable {
    /// What is committed; empty when there is nothing to tell.
    let text: String
    /// Ended offsets at the top of the map that found no room: should the partition move now, they are done again.
    let untold: Int

    private static let version = "e1"

    /// The text that stands beside a committed offset.
    /// - Parameter lengths: as the type says, of any content.
    static func seal(_ lengths: String, at offset: Int64) -> String {
        "\(version).\(checksum(of: lengths, at: offset)).\(lengths)"
    }

    private static func checksum(of lengths: some StringProtocol, at offset: Int64) -> Substring {
        SHA256.hash(Array("\(version).\(offset).\(lengths)".utf8)).description.prefix(checksumLength)
    }

    fileprivate static let checksumLength = 8
    /// Characters beside the lengths.
    fileprivate static let frame = version.utf8.count + checksumLength + 2

    /// The lengths of a sealed text; nil when it is not one, or not for this offset.
    fileprivate static func open(_ text: String, at offset: Int64) -> Substring? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == version, parts[1] == checksum(of: parts[2], at: offset) else { return nil }
        return parts[2]
    }
}

extension OffsetMap {
    /// The text to commit.
    /// - Parameter limit: characters it may have. What does not fit is left out from the top end, where it is done again rather
    ///   than lost.
    func note(limit: Int) -> OffsetNote {
        var lengths: [UInt8] = []
        var end = base
        var told = 0
        for run in runs {
            let length = lengths.count
            Base32.append(run.lowerBound - end, to: &lengths)
            Base32.append(Int64(run.count), to: &lengths)
            guard OffsetNote.frame + lengths.count <= limit else {
                lengths.removeSubrange(length...)
                break
            }
            end = run.upperBound
            told += 1
        }
        let untold = runs[told...].reduce(0) { $0 + $1.count }
        guard told > 0 else { return OffsetNote(text: "", untold: untold) }
        return OffsetNote(text: OffsetNote.seal(String(decoding: lengths, as: UTF8.self), at: base), untold: untold)
    }

    /// Below which offset everything that has ended is told of by the note, or by the offset it stands beside.
    func toldEnd(_ note: OffsetNote) -> Int64 {
        var untold = note.untold
        return runs.last { run in
            defer { untold -= run.count }
            return untold == 0
        }?.upperBound ?? base
    }

    /// Reads the text that was committed with `base`.
    /// - Returns: nil for anything that ``note(limit:)`` did not write for this offset: then nothing is known to have ended.
    init?(note text: String, at base: Int64) {
        guard base >= 0, let lengths = OffsetNote.open(text, at: base) else { return nil }
        self.init(from: base)
        var digits = Array(lengths.utf8)[...]
        var end = base
        while !digits.isEmpty {
            guard let gap = Base32.removeFirst(from: &digits), let count = Base32.removeFirst(from: &digits),
                // One spelling for each map: only the first gap may be empty.
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

/// Numbers to the base of 32 in characters of which the upper half says that more follow.
private enum Base32 {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    private static let values: [UInt8: UInt64] = Dictionary(
        uniqueKeysWithValues: digits.enumerated().map { ($1, UInt64($0)) })

    static func append(_ number: Int64, to text: inout [UInt8]) {
        var rest = Int(number)
        while rest >= 32 {
            text.append(digits[32 + rest % 32])
            rest /= 32
        }
        text.append(digits[rest])
    }

    /// Nil when no number of 63 bits stands there in its one spelling.
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

/// Which offsets of a partition have ended, from the committed one on. A pure value.
///
/// It is committed with the offset, so that the partition's next owner does not do again what has ended already:
/// ``note(limit:)`` is its text.
struct OffsetMap: Sendable, Equatable {
    /// The committed offset. What lies below it has ended, too.
    let base: Int64
    /// What has ended from there on: ascending, none of them empty, no two of them adjacent.
    private(set) var runs: [Range<Int64>] = []

    /// Nothing has ended yet.
    init(from base: Int64) { self.base = base }

    /// Whether the offset has ended.
    func contains(_ offset: Int64) -> Bool {
        if offset < base { return true }
        // The first run that does not lie wholly below.
        var (low, high) = (0, runs.count)
        while low < high {
            let middle = (low + high) / 2
            if runs[middle].upperBound <= offset { low = middle + 1 } else { high = middle }
        }
        return low < runs.count && runs[low].contains(offset)
    }

    /// Adds offsets that have ended; those below what the last run covers are there already. An empty range adds nothing.
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
