import Testing

@testable import Vips

/// Formats as first bytes announce them.
@Suite struct SignatureTests {
    @Test(arguments: [
        "<svg/>", "\u{feff}\n <svg xmlns='http://www.w3.org/2000/svg'>", "<SVG width='1'>", "<s:svg xmlns:s='a'>",
        "<?xml version='1.0'?><!-- < > -- svg --><svg>",
        "<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" 'a'>\n<svg>",
        "<!DOCTYPE svg [<!ENTITY a '>]><html>'><!-- ]> ' --><!ENTITY b \"<svg\">]><svg>",
    ]) func aDocumentWhoseRootIsSVG(_ text: String) {
        #expect(Format(announcedBy: Array(text.utf8)) == .svg)
    }

    @Test(arguments: [
        "", "<", "svg", "<svg", "<svgx>", "<html><svg></svg></html>", "<!DOCTYPE html><p>",
        "<!-- <svg> ", "<?xml <svg>", "<!DOCTYPE svg [<svg>", "text <svg>", "<!--<svg>--><p>",
    ]) func aDocumentThatIsNone(_ text: String) {
        #expect(Format(announcedBy: Array(text.utf8)) == nil)
    }

    /// What stands before the root is looked at no further than that.
    @Test func aRootThatComesLate() {
        let comment = "<!--" + String(repeating: "a", count: 32 << 10) + "-->"
        #expect(Format(announcedBy: Array((comment + "<svg>").utf8)) == nil)
    }

    @Test(arguments: Format.allCases.filter(\.canSave)) func everyCutOfASignatureIsNone(_ format: Format) throws {
        let file = try Samples.file(format)
        #expect(Format(announcedBy: file) == format)
        #expect(Format(announcedBy: Array(file.prefix(1))) == nil)
        #expect(Format(announcedBy: []) == nil)
    }
}
