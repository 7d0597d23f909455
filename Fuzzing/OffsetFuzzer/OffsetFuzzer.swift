@testable import HalcyonCluster

/// Fuzzes the text that tells in a commit's metadata which offsets have ended.
///
///     OffsetFuzzer [libFuzzer's options] FOLDER…
///
/// An input is tried as a text that was committed, as the lengths of a text whose checksum is right, and as a map. A finding is a crash, a
/// text that is read and would not be written so, a text that is longer than its limit, or a map that does not come back.
enum OffsetFuzzer {
    static let base: Int64 = 500

    static func run(_ input: UnsafeBufferPointer<UInt8>) {
        let text = String(decoding: input, as: UTF8.self)
        for text in [text, OffsetNote.seal(text, at: base)] { read(text) }
        write(map(input), limit: Int(input.first ?? 0) * 16)
    }

    private static func read(_ text: String) {
        guard let map = OffsetMap(note: text, at: base) else { return }
        let again = map.note(limit: text.utf8.count)
        guard again == OffsetNote(text: text, untold: 0) else { fatalError("\(text) became \(again)") }
    }

    private static func write(_ map: OffsetMap, limit: Int) {
        let note = map.note(limit: limit)
        guard note.text.utf8.count <= limit else { fatalError("\(note) is longer than \(limit)") }
        let read = OffsetMap(note: note.text, at: base) ?? OffsetMap(from: base)
        let told = read.runs.reduce(0) { $0 + $1.count }
        let all = map.runs.reduce(0) { $0 + $1.count }
        guard map.runs.starts(with: read.runs), told + note.untold == all else {
            fatalError("\(map) came back as \(read)")
        }
    }

    /// A run for each two bytes: a gap and a length of up to 40 bits, of which five are given and the rest is zeros.
    private static func map(_ input: UnsafeBufferPointer<UInt8>) -> OffsetMap {
        func length(_ byte: UInt8) -> Int64 { Int64(byte % 32 + 1) << Int64(byte / 32 * 5) }
        var map = OffsetMap(from: base)
        var end = base
        for index in stride(from: 0, to: input.count - 1, by: 2) {
            let start = end + length(input[index])
            end = start + length(input[index + 1])
            map.append(start..<end)
        }
        return map
    }
}

// The program's main is libFuzzer's, which calls this.

@_cdecl("LLVMFuzzerTestOneInput") func test(_ data: UnsafePointer<UInt8>?, _ size: Int) -> Int32 {
    OffsetFuzzer.run(UnsafeBufferPointer(start: data, count: size))
    return 0
}
