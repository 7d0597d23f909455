@testable import HalcyonCluster

/// Fuzzes the encoding of completed offsets in commit metadata.
///
///     OffsetFuzzer [libFuzzer options] FOLDER…
///
/// Each input is decoded as metadata, decoded again with a valid checksum, and used as a list of ranges to encode. A
/// finding is a crash, metadata that decodes but encodes differently, metadata that exceeds its limit, or ranges that
/// differ after encoding and decoding.
enum OffsetFuzzer {
    static let base: Int64 = 500

    static func run(_ input: UnsafeBufferPointer<UInt8>) {
        let text = String(decoding: input, as: UTF8.self)
        for text in [text, CommitMetadata.seal(text, at: base)] { read(text) }
        write(map(input), limit: Int(input.first ?? 0) * 16)
    }

    private static func read(_ text: String) {
        guard let map = CompletedRanges(commitMetadata: text, at: base) else { return }
        let again = map.commitMetadata(limit: text.utf8.count)
        guard again == CommitMetadata(text: text, untracked: 0) else { fatalError("\(text) encodes as \(again)") }
    }

    private static func write(_ map: CompletedRanges, limit: Int) {
        let commitMetadata = map.commitMetadata(limit: limit)
        guard commitMetadata.text.utf8.count <= limit else {
            fatalError("\(commitMetadata) exceeds the limit of \(limit) bytes")
        }
        let read = CompletedRanges(commitMetadata: commitMetadata.text, at: base) ?? CompletedRanges(from: base)
        let told = read.runs.reduce(0) { $0 + $1.count }
        let all = map.runs.reduce(0) { $0 + $1.count }
        guard map.runs.starts(with: read.runs), told + commitMetadata.untracked == all else {
            fatalError("\(map) was decoded as \(read)")
        }
    }

    /// Returns a range for every two bytes, which encode a gap and a length of up to 40 bits: five bits and a shift.
    private static func map(_ input: UnsafeBufferPointer<UInt8>) -> CompletedRanges {
        func length(_ byte: UInt8) -> Int64 { Int64(byte % 32 + 1) << Int64(byte / 32 * 5) }
        var map = CompletedRanges(from: base)
        var end = base
        for index in stride(from: 0, to: input.count - 1, by: 2) {
            let start = end + length(input[index])
            end = start + length(input[index + 1])
            map.append(start..<end)
        }
        return map
    }
}

// libFuzzer provides the main function and calls this function.

@_cdecl("LLVMFuzzerTestOneInput") func test(_ data: UnsafePointer<UInt8>?, _ size: Int) -> Int32 {
    OffsetFuzzer.run(UnsafeBufferPointer(start: data, count: size))
    return 0
}
