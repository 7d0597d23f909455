import Testing

@testable import Vips

/// Detection of formats by the first bytes.
@Suite struct SignatureTests {
    @Test(arguments: [
        "<svg/>", "\u{feff}\n <svg xmlns='http://www.w3.org/2000/svg'>", "<SVG width='1'>", "<s:svg xmlns:s='a'>",
        "<?xml version='1.0'?><!-- < > -- svg --><svg>",
        "<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" 'a'>\n<svg>",
        "<!DOCTYPE svg [<!ENTITY a '>]><html>'><!-- ]> ' --><!ENTITY b \"<svg\">]><svg>",
    ]) func detectsDocumentsWithAnSVGRoot(_ text: String) {
        #expect(Format(announcedBy: Array(text.utf8)) == .svg)
    }

    @Test(arguments: [
        "", "<", "svg", "<svg", "<svgx>", "<html><svg></svg></html>", "<!DOCTYPE html><p>",
        "<!-- <svg> ", "<?xml <svg>", "<!DOCTYPE svg [<svg>", "text <svg>", "<!--<svg>--><p>",
    ]) func rejectsOtherDocuments(_ text: String) {
        #expect(Format(announcedBy: Array(text.utf8)) == nil)
    }

    /// Only the first 32 KiB of a file are searched for the root.
    @Test func doesNotSearchFarForTheRoot() {
        let comment = "<!--" + String(repeating: "a", count: 32 << 10) + "-->"
        #expect(Format(announcedBy: Array((comment + "<svg>").utf8)) == nil)
    }

    @Test(arguments: Format.allCases.filter(\.canSave)) func doesNotDetectAFormatByOneByte(_ format: Format) throws {
        let file = try SampleFiles.file(format)
        #expect(Format(announcedBy: file) == format)
        #expect(Format(announcedBy: Array(file.prefix(1))) == nil)
        #expect(Format(announcedBy: []) == nil)
    }
}
