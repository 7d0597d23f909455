import Expat
import Testing

@Suite struct XMLElementTests {
    @Test func readsElementsAndTheirText() throws {
        let root = try XMLElement(
            document: Array(
                """
                <?xml version="1.0" encoding="UTF-8"?>
                <List xmlns="http://example.org/"><Item><Key>a&amp;b/é</Key></Item><Item><Key/></Item></List>
                """.utf8))
        #expect(root.name == "List")
        #expect(root.children.map { $0["Key"]?.text } == ["a&b/é", ""])
        #expect(root["Missing"] == nil)
    }

    @Test(arguments: ["", "<a>", "<a></b>", "text", "<a>\u{1}</a>", "<a/><b/>"])
    func rejectsWhatIsNotWellFormed(text: String) {
        #expect(throws: XMLError.self) { try XMLElement(document: Array(text.utf8)) }
    }

    @Test func errorsTellTheLine() {
        let error = #expect(throws: XMLError.self) { try XMLElement(document: Array("<a>\n<b>\n</a>".utf8)) }
        #expect(error?.description == "line 3: mismatched tag")
    }

    @Test func rejectsDeepNesting() {
        func nested(_ depth: Int) -> [UInt8] {
            Array((String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)).utf8)
        }
        #expect(throws: Never.self) { try XMLElement(document: nested(64)) }
        #expect(throws: XMLError.self) { try XMLElement(document: nested(65)) }
    }

    /// Ten levels of ten references each would be ten billion characters.
    @Test func rejectsEntitiesThatExpandWithoutEnd() {
        var document = "<!DOCTYPE a [<!ENTITY e0 \"aaaaaaaaaa\">"
        for level in 1...9 {
            document += "<!ENTITY e\(level) \"\(String(repeating: "&e\(level - 1);", count: 10))\">"
        }
        #expect(throws: XMLError.self) { try XMLElement(document: Array((document + "]><a>&e9;</a>").utf8)) }
    }

    @Test func ignoresExternalEntities() throws {
        let document = "<!DOCTYPE a [<!ENTITY e SYSTEM \"file:///etc/hostname\">]><a>&e;</a>"
        #expect(try XMLElement(document: Array(document.utf8)).text == "")
    }
}
