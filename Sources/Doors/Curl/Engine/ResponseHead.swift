import HTTPFields

/// Gathers the lines of a response's head, as libcurl hands them out: all lines of all responses of a transfer, one by one.
///
/// A pure value. Each status line begins anew, so in the end it holds the last response's: redirects and interim responses
/// (RFC 9110, 15.2) leave nothing behind.
struct ResponseHead {
    /// Bytes of headers that one transfer may bring in all: several times what servers send, and what clients take.
    static let limit = 1 << 18

    private(set) var status = 0
    private(set) var headers = HTTPFields()
    private var size = 0
    private var isComplete = false

    /// Whether the response sends the client elsewhere.
    var isRedirect: Bool { (300..<400).contains(status) && headers["Location"] != nil }

    /// What a line turned out to be.
    enum Line { case status, field, end, trailer, tooMuch }

    /// Takes a line with its line break. Bytes that are no UTF-8 are mended.
    mutating func take(_ line: [UInt8]) -> Line {
        size += line.count
        if size > Self.limit { return .tooMuch }
        if line.starts(with: "HTTP/".utf8) {
            status = line.split(separator: 0x20).dropFirst().first.flatMap { Int(text($0)) } ?? 0
            headers = HTTPFields()
            isComplete = false
            return .status
        }
        // Fields after the body belong to no head (RFC 9110, 6.5).
        if isComplete { return .trailer }
        if line.allSatisfy(isBlank) {
            isComplete = true
            return .end
        }
        if isBlank(line[0]) {
            headers.continueLast(text(line[...]))
        } else if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
            headers.add(text(line[..<colon]), text(line[(colon + 1)...]))
        }
        return .field
    }
}

private func isBlank(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0d, 0x0a].contains(byte) }

/// The text without blanks, tabs and line breaks around it.
private func text(_ bytes: ArraySlice<UInt8>) -> String {
    let start = bytes.drop(while: isBlank)
    let end = start.lastIndex { !isBlank($0) } ?? start.startIndex - 1
    return String(decoding: start.isEmpty ? [] : start[...end], as: UTF8.self)
}
