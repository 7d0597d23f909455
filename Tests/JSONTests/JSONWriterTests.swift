import JSON
import Testing

@Suite struct JSONWriterTests {
    func written(_ write: (inout JSONWriter) -> Void) -> String {
        var writer = JSONWriter()
        write(&writer)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    @Test func writesMembersInOrder() {
        let text = written { writer in
            writer.object { writer in
                writer.member("z", 1)
                writer.member("a", "x")
                writer.member("none", Int?.none)
                writer.member("some", Int?.some(3))
                writer.name("list")
                writer.array { writer in
                    writer.value(true)
                    writer.null()
                    writer.array { _ in }
                    writer.object { _ in }
                    writer.raw(Array(#"{"raw":1}"#.utf8))
                }
                writer.member("numbers", [1.5, -0.0])
                writer.member("flag", false)
            }
        }
        #expect(
            text == #"{"z":1,"a":"x","some":3,"list":[true,null,[],{},{"raw":1}],"numbers":[1.5,-0.0],"flag":false}"#)
    }

    @Test func escapesOnlyWhereRequired() {
        #expect(
            written { $0.value("a\"b\\c/d\n\r\t\u{8}\u{0}\u{1f}\u{7f}é\u{2028}😀") }
                == #""a\"b\\c/d\n\r\t\u0008\u0000\u001f"# + "\u{7f}é\u{2028}😀\"")
        #expect(written { $0.object { $0.member("a\"b", 1) } } == #"{"a\"b":1}"#)
    }

    @Test func roundTripsScalars() throws {
        let strings =
            (0...0x2ff).map { String(UnicodeScalar($0)!) + "x" } + [
                "", "😀\u{10ffff}", String(repeating: "\"", count: 300),
            ]
        let doubles = [
            0, -0.0, 0.1, 1 / 3, 1e21, 1e-7, .greatestFiniteMagnitude, .leastNonzeroMagnitude, 400, 123456.789,
        ]
        let integers: [Int64] = [0, -1, .min, .max]
        let text = written { writer in
            writer.array { writer in
                writer.value(strings)
                writer.value(doubles)
                writer.value(integers)
            }
        }
        var lists: [JSONElement] = []
        try JSON.parse(Array(text.utf8), maximumSize: 1 << 20).forEachElement { lists.append($0) }
        var readStrings: [String] = []
        var readDoubles: [UInt64] = []
        var readIntegers: [Int64] = []
        try lists[0].forEachElement { item throws(JSONError) in readStrings.append(try item.string()) }
        try lists[1].forEachElement { item throws(JSONError) in readDoubles.append(try item.double().bitPattern) }
        try lists[2].forEachElement { item throws(JSONError) in readIntegers.append(try item.integer()) }
        #expect(readStrings == strings)
        #expect(readDoubles == doubles.map(\.bitPattern))
        #expect(readIntegers == integers)
        #expect(written { $0.value(UInt64.max) } == "18446744073709551615")
    }

    @Test func embedsParsedValues() throws {
        let element = try JSON.parse(Array(#" { "b" : [1, 2.50, "é\n"], "a" : null } "#.utf8), maximumSize: 100)
        #expect(
            written { $0.object { $0.member("metadata", element) } } == #"{"metadata":{"b":[1,2.5,"é\n"],"a":null}}"#)
    }
}
