/// Turns the words of a command into the pointers and lengths that `redisAsyncCommandArgv` takes.
///
/// Short words are gathered in one buffer that is used again for the next command; long bodies are pointed at where they are.
struct ArgumentBuffer {
    /// Bytes up to which copying a body is cheaper than pointing at it.
    private static let copied = 512
    /// Bytes of capacity worth keeping from one command to the next.
    private static let kept = 1 << 16

    private var text: [UInt8] = []
    private var lengths: [Int] = []
    private var pointers: [UnsafePointer<CChar>?] = []

    /// Calls `body` with the words, which are valid inside it alone.
    mutating func withWords<Result>(
        _ words: [RedisArgument],
        _ body: (Int32, UnsafeMutablePointer<UnsafePointer<CChar>?>, UnsafePointer<Int>) -> Result
    ) -> Result {
        precondition(!words.isEmpty, "a command without words")
        gather(words)
        defer { if text.capacity > Self.kept { text = [] } }
        return text.withUnsafeBufferPointer { text in
            // A zero-length buffer may have no address, and hiredis copies nothing from it.
            let base = UnsafeRawPointer(text.baseAddress)?.assumingMemoryBound(to: CChar.self)
            return point(words[...], from: base, body)
        }
    }

    private mutating func gather(_ words: [RedisArgument]) {
        text.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        pointers.removeAll(keepingCapacity: true)
        for word in words {
            let before = text.count
            switch word {
            case .string(let string): text.append(contentsOf: string.utf8)
            case .integer(let value): text.append(contentsOf: String(value).utf8)
            case .bytes(let bytes) where bytes.count <= Self.copied: text.append(contentsOf: bytes)
            case .bytes(let bytes):
                lengths.append(bytes.count)
                continue
            }
            lengths.append(text.count - before)
        }
    }

    /// Fills in the pointers, nesting once for each long body so that its storage stays where it is.
    private mutating func point<Result>(
        _ words: ArraySlice<RedisArgument>, from text: UnsafePointer<CChar>?,
        _ body: (Int32, UnsafeMutablePointer<UnsafePointer<CChar>?>, UnsafePointer<Int>) -> Result
    ) -> Result {
        var text = text
        for index in words.indices {
            if case .bytes(let bytes) = words[index], bytes.count > Self.copied {
                return bytes.withUnsafeBytes { bytes in
                    pointers.append(bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
                    return point(words[(index + 1)...], from: text, body)
                }
            }
            pointers.append(text)
            text = text.map { $0 + lengths[index] }
        }
        return body(Int32(pointers.count), &pointers, lengths)
    }
}
