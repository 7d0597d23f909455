import Formats
import Testing

@Suite struct HTTPFieldsTests {
    private let fields: HTTPFields = [
        "Vary": "Accept", "ETag": "\"a\"", "vary": "Accept-Encoding,, \tX-Kind", "Empty": "",
    ]

    @Test func linesOfOneNameAreJoined() {
        #expect(fields["VARY"] == "Accept, Accept-Encoding,, \tX-Kind")
        #expect(fields["etag"] == "\"a\"" && fields["empty"] == "" && fields["absent"] == nil)
    }

    @Test func linesAreFoundOneByOne() {
        #expect(fields.first("vary") == "Accept" && fields.first("absent") == nil)
        #expect(fields.all("Vary") == ["Accept", "Accept-Encoding,, \tX-Kind"] && fields.all("absent").isEmpty)
    }

    @Test func aListIsOfAllLines() {
        #expect(fields.list("vary") == ["accept", "accept-encoding", "x-kind"])
        #expect(fields.list("empty").isEmpty && fields.list("absent").isEmpty)
    }

    @Test func aNewValueTakesThePlaceOfAll() {
        var fields = fields
        fields["VARY"] = "*"
        #expect(fields.fields.map(\.name) == ["ETag", "Empty", "VARY"] && fields["vary"] == "*")
        fields["vary"] = nil
        #expect(fields.all("vary").isEmpty)
        fields.add("etag", "\"b\"")
        #expect(fields.all("ETag") == ["\"a\"", "\"b\""])
        fields.continueLast("c")
        #expect(fields.all("ETag") == ["\"a\"", "\"b\" c"])
    }

    @Test func someAreTakenOut() {
        #expect(fields.only(["vary", "Absent"]) == ["Vary": "Accept", "vary": "Accept-Encoding,, \tX-Kind"])
    }

    @Test func nothingIsContinuedWhereThereIsNothing() {
        var fields = HTTPFields()
        fields.continueLast("c")
        #expect(fields == [:])
    }

    /// To Swift they are the same text.
    @Test func valuesAreComparedByTheirBytes() {
        let (one, other): (HTTPFields, HTTPFields) = (["X": "caf\u{e9}"], ["X": "cafe\u{301}"])
        #expect(one != other && Set([one, other]).count == 2 && one == ["X": "caf\u{e9}"])
        // The case of a name tells two fields apart as they were sent.
        #expect(one != ["x": "caf\u{e9}"])
    }
}
