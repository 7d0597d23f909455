import Formats
import Testing

@Suite struct HTTPFieldsTests {
    private let fields: HTTPFields = [
        "Vary": "Accept", "ETag": "\"a\"", "vary": "Accept-Encoding,, \tX-Kind", "Empty": "",
    ]

    @Test func joinsLinesOfOneName() {
        #expect(fields["VARY"] == "Accept, Accept-Encoding,, \tX-Kind")
        #expect(fields["etag"] == "\"a\"" && fields["empty"] == "" && fields["absent"] == nil)
    }

    @Test func returnsLinesSeparately() {
        #expect(fields.first("vary") == "Accept" && fields.first("absent") == nil)
        #expect(fields.all("Vary") == ["Accept", "Accept-Encoding,, \tX-Kind"] && fields.all("absent").isEmpty)
    }

    @Test func combinesListsOfAllLines() {
        #expect(fields.list("vary") == ["accept", "accept-encoding", "x-kind"])
        #expect(fields.list("empty").isEmpty && fields.list("absent").isEmpty)
    }

    @Test func assignmentReplacesAllLines() {
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

    @Test func selectsFieldsByName() {
        #expect(fields.only(["vary", "Absent"]) == ["Vary": "Accept", "vary": "Accept-Encoding,, \tX-Kind"])
    }

    @Test func continuingWithoutFieldsHasNoEffect() {
        var fields = HTTPFields()
        fields.continueLast("c")
        #expect(fields == [:])
    }

    /// Swift considers the two strings equal.
    @Test func comparesValuesByBytes() {
        let (one, other): (HTTPFields, HTTPFields) = (["X": "caf\u{e9}"], ["X": "cafe\u{301}"])
        #expect(one != other && Set([one, other]).count == 2 && one == ["X": "caf\u{e9}"])
        // Names are compared as sent, including their case.
        #expect(one != ["x": "caf\u{e9}"])
    }
}
