// What the kinds of URLs have in common. They are taken apart byte by byte: to Swift a slash with a combining mark behind
// it is another character, to every other program it is a slash.

extension Failure {
    static func invalidURL(_ reason: String) -> Failure { Failure(.invalidJob, reason) }
}

/// - Throws: ``Failure`` `invalid_job` for what is too long or has characters that no URL has.
func checkCharacters(_ bytes: [UInt8], longest: Int) throws(Failure) {
    guard bytes.count <= longest else { throw .invalidURL("longer than \(longest) bytes") }
    guard bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else {
        throw .invalidURL("a URL has no spaces or control characters; write them as %20 and the like")
    }
}

/// RFC 3986, section 3.1.
func isScheme(_ bytes: ArraySlice<UInt8>) -> Bool {
    guard let first = bytes.first, isLetter(first) else { return false }
    return bytes.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) || "+-.".utf8.contains($0) }
}

func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte | 0x20) }

func isHexadecimal(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20)
}

/// ASCII alone, as every language can do it.
func lowercased(_ bytes: ArraySlice<UInt8>) -> String {
    String(unsafeUninitializedCapacity: bytes.count) { ascii in
        for (place, byte) in bytes.enumerated() { ascii[place] = (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }
        return bytes.count
    }
}

extension Sequence<UInt8> {
    /// Whether one of the bytes is an ASCII control character.
    var hasControlCharacter: Bool { contains { $0 < 0x20 || $0 == 0x7f } }
}
