import Testing

@testable import HalcyonGateway

/// Parsing of `Range` (RFC 9110, 14.1.2).
@Suite struct ByteRangeTests {
    @Test(arguments: [
        ("bytes=0-0", ByteRange.part(0..<1)), ("bytes=0-99", .part(0..<100)), ("bytes=0-100", .part(0..<100)),
        ("bytes=50-", .part(50..<100)), ("bytes=-10", .part(90..<100)), ("bytes=-1000", .part(0..<100)),
        ("BYTES=1-2", .part(1..<3)), ("bytes= 1-2 ", .part(1..<3)),
        ("bytes=99-99999999999999999999999999", .part(99..<100)),
        ("bytes=100-", .none), ("bytes=-0", .none), ("bytes=99999999999999999999-", .none),
    ])
    func parsesRanges(_ header: String, _ range: ByteRange) { #expect(ByteRange(header, count: 100) == range) }

    @Test(arguments: [
        "bytes=5-4", "bytes=", "bytes=-", "bytes=a-b", "bytes=1-2,4-5", "bytes=+1-2", "lines=1-2", "bytes", "",
    ])
    func ignoresInvalidOrUnsupportedRanges(_ header: String) { #expect(ByteRange(header, count: 100) == .whole) }

    @Test func emptyFileHasNoRange() {
        #expect(ByteRange("bytes=0-", count: 0) == .none)
        #expect(ByteRange(nil, count: 0) == .whole)
    }
}
