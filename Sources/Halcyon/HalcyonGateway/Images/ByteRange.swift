/// The part of a file that a request asks for with `Range` (RFC 9110, 14.1.2). A pure value.
enum ByteRange: Hashable {
    /// The whole file: nothing else was asked for, or nothing that is understood here.
    case whole
    /// These bytes, at least one.
    case part(Range<Int>)
    /// No byte of it: 416.
    case none

    /// - Parameters:
    ///   - header: the value of `Range`; nil where there is none.
    ///   - count: bytes of the whole file.
    ///
    /// Several ranges at once are answered with the whole file, as RFC 9110, 14.2 allows: who wants pieces of an image asks for one.
    init(_ header: String?, count: Int) {
        self = .whole
        guard let header, let unit = header.firstIndex(of: "="), header[..<unit].lowercased() == "bytes" else { return }
        let spec = header[header.index(after: unit)...].filter { $0 != " " && $0 != "\t" }
        let ends = spec.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]) else { return }
        switch (first, last) {
        case (nil, nil): return
        case (nil, let suffix?): self = suffix == 0 || count == 0 ? .none : .part(max(0, count - suffix)..<count)
        case (let first?, let last):
            if let last, last < first { return }
            self = first >= count ? .none : .part(first..<min(count, (last ?? count - 1) &+ 1))
        }
    }

    /// Digits; nil inside for none at all, nil outside for what is no number. A number past all files is the largest.
    private static func number(_ text: Substring) -> Int?? {
        guard text.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains) else { return nil }
        return .some(text.isEmpty ? nil : Int(text) ?? Int.max - 1)
    }
}
