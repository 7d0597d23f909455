/// Cuts what comes in parts into lines. A pure value, which never holds more than the longest line.
struct LineBuffer {
    /// A line, without its end.
    struct Line: Sendable {
        /// Counted from 1.
        let number: Int
        /// nil for one that is too long.
        let bytes: [UInt8]?

        /// Whether there is nothing on it.
        var isBlank: Bool { bytes?.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0d } ?? false }
    }

    private let longest: Int
    private var rest: [UInt8] = []
    private var isTooLong = false
    private var number = 0

    /// - Parameter longest: bytes of the longest line.
    init(longest: Int) { self.longest = longest }

    /// The lines that end in this part.
    mutating func append(_ part: [UInt8]) -> [Line] {
        var lines: [Line] = []
        var from = part.startIndex
        while let end = part[from...].firstIndex(of: UInt8(ascii: "\n")) {
            take(part[from..<end])
            lines.append(cut())
            from = end + 1
        }
        take(part[from...])
        return lines
    }

    /// What stands behind the last end of a line, if anything does.
    mutating func end() -> [Line] { rest.isEmpty && !isTooLong ? [] : [cut()] }

    private mutating func take(_ bytes: ArraySlice<UInt8>) {
        if isTooLong { return }
        if rest.count + bytes.count > longest {
            (rest, isTooLong) = ([], true)
        } else {
            rest += bytes
        }
    }

    private mutating func cut() -> Line {
        number += 1
        defer { (rest, isTooLong) = ([], false) }
        return Line(number: number, bytes: isTooLong ? nil : rest)
    }
}
