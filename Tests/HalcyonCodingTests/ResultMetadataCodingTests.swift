import HalcyonCoding
import HalcyonModel
import JSON
import Testing

@Suite struct ResultMetadataCodingTests {
    static func metadata(status: Int?, etag: String?, format: ImageFormat, sourceFormat: ImageFormat) -> ResultMetadata
    {
        ResultMetadata(
            width: 400, height: 300, format: format, bytes: 1 << 40, sha256: String(repeating: "0a", count: 32),
            source: SourceMetadata(
                status: status, etag: etag, bytes: 1 << 50, format: sourceFormat, width: 65_535, height: 1,
                isTruncated: status == 304))
    }

    static func json(_ metadata: ResultMetadata) -> [UInt8] {
        var writer = JSONWriter()
        writer.value(metadata)
        return writer.bytes
    }

    @Test func roundTripsThroughJSON() throws {
        for format in ImageFormat.writable {
            for sourceFormat in ImageFormat.allCases {
                for status in [nil, 200, 304] {
                    for etag in [nil, "", #"W/"é\n""#] {
                        let metadata = Self.metadata(
                            status: status, etag: etag, format: format, sourceFormat: sourceFormat)
                        #expect(try ResultMetadata(json: Self.json(metadata)) == metadata)
                        var animated = metadata
                        animated.frames = 12
                        animated.isPrivate = true
                        animated.blurhash = "LEHV6nWB2yk8pyo0adR*.7kCMdnj"
                        animated.dominantColor = "#8a6f5c"
                        animated.trim = PixelRect(x: 1, y: 2, width: 3, height: 4)
                        (animated.palette, animated.thumbhash) = (["#8a6f5c", "#000000"], "XRgO")
                        (animated.phash, animated.info) = ("9c2e63d1b04f5a78", Array(#"{"width":4}"#.utf8))
                        let place = PixelRect(x: 5, y: 0, width: 7, height: 9)
                        animated.faces = [DetectedFace(place, confidence: 0.9876), DetectedFace(place, confidence: 0)]
                        #expect(try ResultMetadata(json: Self.json(animated)) == animated)
                    }
                }
            }
        }
    }

    static let valid = String(
        decoding: json(metadata(status: 200, etag: "e", format: .png, sourceFormat: .jpeg)), as: UTF8.self)

    @Test(arguments: [
        ("\"width\":400,", "", "width: is missing"),
        ("\"width\":400", "\"width\":\"400\"", "width: expected a number, found a string"),
        ("\"height\":300", "\"height\":-1", "height: expected at least 0, found -1"),
        ("\"format\":\"png\"", "\"format\":\"xcf\"", "format: expected one of jpeg, png"),
        ("\"sha256\":", "\"sha\":", "sha256: is missing"),
        ("\"source\":", "\"sauce\":", "source: is missing"),
        ("\"status\":200", "\"status\":true", "source.status: expected a number, found true or false"),
        ("\"etag\":\"e\"", "\"etag\":1", "source.etag: expected a string, found a number"),
    ])
    func rejectsInvalidMembers(piece: String, fault: String, message: String) throws {
        let text = Self.valid.replacing(piece, with: fault)
        try #require(text != Self.valid)
        #expect {
            try ResultMetadata(json: Array(text.utf8))
        } throws: {
            "\($0)".hasPrefix(message)
        }
    }

    @Test(arguments: ["", "null", "[]", "7", "\u{0}"])
    func rejectsInputThatIsNotAnObject(text: String) {
        #expect(throws: JSONError.self) { try ResultMetadata(json: Array(text.utf8)) }
    }

    @Test func ignoresUnknownMembers() throws {
        let text = Self.valid.replacing("{\"width\"", with: "{\"mood\":\"x\",\"width\"")
        #expect(try ResultMetadata(json: Array(text.utf8)) == ResultMetadata(json: Array(Self.valid.utf8)))
    }
}
