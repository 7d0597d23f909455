import HalcyonCoding
import HalcyonModel
import JSON
import Testing

@Suite struct ResultFactsCodingTests {
    static func facts(status: Int?, etag: String?, format: ImageFormat, sourceFormat: ImageFormat) -> ResultMetadata {
        ResultMetadata(
            width: 400, height: 300, format: format, bytes: 1 << 40, sha256: String(repeating: "0a", count: 32),
            source: SourceMetadata(
                status: status, etag: etag, bytes: 1 << 50, format: sourceFormat, width: 65_535, height: 1,
                isTruncated: status == 304))
    }

    static func json(_ facts: ResultMetadata) -> [UInt8] {
        var writer = JSONWriter()
        writer.value(facts)
        return writer.bytes
    }

    @Test func whatIsWrittenIsReadBack() throws {
        for format in ImageFormat.writable {
            for sourceFormat in ImageFormat.allCases {
                for status in [nil, 200, 304] {
                    for etag in [nil, "", #"W/"é\n""#] {
                        let facts = Self.facts(status: status, etag: etag, format: format, sourceFormat: sourceFormat)
                        #expect(try ResultMetadata(json: Self.json(facts)) == facts)
                        var animated = facts
                        animated.frames = 12
                        animated.isPrivate = true
                        animated.blurhash = "LEHV6nWB2yk8pyo0adR*.7kCMdnj"
                        animated.dominantColor = "#8a6f5c"
                        #expect(try ResultMetadata(json: Self.json(animated)) == animated)
                    }
                }
            }
        }
    }

    static let good = String(
        decoding: json(facts(status: 200, etag: "e", format: .png, sourceFormat: .jpeg)), as: UTF8.self)

    @Test(arguments: [
        ("\"width\":400,", "", "width: is missing"),
        ("\"width\":400", "\"width\":\"400\"", "width: expected a number, found a string"),
        ("\"height\":300", "\"height\":-1", "height: expected at least 0, found -1"),
        ("\"format\":\"png\"", "\"format\":\"bmp\"", "format: expected one of jpeg, png"),
        ("\"sha256\":", "\"sha\":", "sha256: is missing"),
        ("\"source\":", "\"sauce\":", "source: is missing"),
        ("\"status\":200", "\"status\":true", "source.status: expected a number, found true or false"),
        ("\"etag\":\"e\"", "\"etag\":1", "source.etag: expected a string, found a number"),
    ])
    func saysWhatIsWrong(piece: String, fault: String, message: String) throws {
        let text = Self.good.replacing(piece, with: fault)
        try #require(text != Self.good)
        #expect {
            try ResultMetadata(json: Array(text.utf8))
        } throws: {
            "\($0)".hasPrefix(message)
        }
    }

    @Test(arguments: ["", "null", "[]", "7", "\u{0}"])
    func refusesWhatIsNoFacts(text: String) {
        #expect(throws: JSONError.self) { try ResultMetadata(json: Array(text.utf8)) }
    }

    @Test func membersOfLaterVersionsAreIgnored() throws {
        let text = Self.good.replacing("{\"width\"", with: "{\"palette\":\"x\",\"width\"")
        #expect(try ResultMetadata(json: Array(text.utf8)) == ResultMetadata(json: Array(Self.good.utf8)))
    }
}
