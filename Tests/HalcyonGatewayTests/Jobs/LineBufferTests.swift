import TestSupport
import Testing

@testable import HalcyonGateway

/// Splitting chunks into lines.
@Suite struct LineBufferTests {
    private static func lines(_ parts: [String], longest: Int = 8) -> [String?] {
        var buffer = LineBuffer(longest: longest)
        let lines = parts.flatMap { buffer.append(Array($0.utf8)) } + buffer.end()
        for (index, line) in lines.enumerated() where line.number != index + 1 { return ["number \(line.number)"] }
        return lines.map { $0.bytes.map { String(decoding: $0, as: UTF8.self) } }
    }

    @Test(arguments: [
        ([String](), [String?]()), ([""], []), (["a"], ["a"]), (["a\n"], ["a"]), (["a\nb"], ["a", "b"]),
        (["a", "b\n", "\nc"], ["ab", "", "c"]), (["\n\n"], ["", ""]),
        (["12345678\n"], ["12345678"]), (["123456789\nok\n"], [nil, "ok"]), (["12345", "6789", "0\nok"], [nil, "ok"]),
        (["123456789"], [nil]),
    ])
    func splitsAtLineEnds(_ parts: [String], _ lines: [String?]) { #expect(Self.lines(parts) == lines) }

    @Test func splitsTheSameAtAnyChunkSize() {
        let text = "one\ntwo\n\nthree-is-too-long\nfour"
        let whole = Self.lines([text])
        for size in 1...text.utf8.count {
            let bytes = Array(text.utf8)
            let parts = stride(from: 0, to: bytes.count, by: size).map {
                String(decoding: bytes[$0..<min($0 + size, bytes.count)], as: UTF8.self)
            }
            #expect(Self.lines(parts) == whole)
        }
    }

    @Test func detectsBlankLines() {
        #expect(LineBuffer.Line(number: 1, bytes: Array(" \t\r".utf8)).isBlank)
        #expect(!LineBuffer.Line(number: 1, bytes: Array("{}".utf8)).isBlank)
        #expect(!LineBuffer.Line(number: 1, bytes: nil).isBlank)
    }
}
