/// The header lines of a request as libmicrohttpd 0.9.75 leaves them in its buffer once it has read them: a zero in place of each
/// colon, and two in place of each line's end.
///
/// That version takes a bare line feed for a line's end, joins folded lines, breaks a line off at a zero, and takes a line that
/// begins with its colon for the end of the head, so that what stands behind becomes another request. Its values tell nothing
/// of that; the buffer does. Later versions refuse all of it by themselves.
enum RawHead {
    /// Whether the lines are what they seem: `count` headers, each with a name, on a line of its own that ends as it should.
    ///
    /// - Parameters:
    ///   - bytes: from behind the version in the request line to the end of the head.
    static func isSound(_ bytes: UnsafeRawBufferPointer, count: Int) -> Bool {
        var rest = bytes[...]
        func end() -> Bool {
            guard rest.prefix(2).elementsEqual([0, 0]) else { return false }
            rest = rest.dropFirst(2)
            return true
        }
        guard end() else { return false }
        for _ in 0..<count {
            guard let colon = rest.firstIndex(of: 0), colon > rest.startIndex else { return false }
            let name = rest[..<colon]
            // A line that folds begins with a blank; one that a zero has broken off may hold its own colon still.
            guard !name.contains(where: { $0 <= 0x20 || $0 == UInt8(ascii: ":") }) else { return false }
            rest = rest[(colon + 1)...]
            guard let valueEnd = rest.firstIndex(of: 0) else { return false }
            rest = rest[valueEnd...]
            guard end() else { return false }
        }
        return end() && rest.isEmpty
    }
}
