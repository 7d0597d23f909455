/// A builder of SVG documents. Their length says nothing about the cost of rendering them.
enum SVGFile {
    /// A document of 60×40.
    static func document(_ body: String, sides: String = "width='60' height='40'", before: String = "") -> [UInt8] {
        text(
            "<?xml version='1.0'?>\(before)<svg xmlns='http://www.w3.org/2000/svg' "
                + "xmlns:xlink='http://www.w3.org/1999/xlink' \(sides)>\(body)</svg>")
    }

    static let rect = "<rect width='60' height='40' fill='red'/>"

    /// Nested entities, each ten times the one before (billion laughs).
    private static func laughs(_ levels: Int) -> String {
        let entities = (1...levels).map { level in
            "<!ENTITY l\(level) '\(String(repeating: "&l\(level - 1);", count: 10))'>"
        }
        return "<!DOCTYPE svg [<!ENTITY l0 'ha'>\(entities.joined())]>"
    }

    /// Nested `use` elements: ten to the power of `levels` rectangles.
    private static func uses(_ levels: Int) -> String {
        let groups = (1...levels).map { level in
            "<g id='u\(level)'>\(String(repeating: "<use xlink:href='#u\(level - 1)'/>", count: 10))</g>"
        }
        return "<defs><g id='u0'>\(rect)</g>\(groups.joined())</defs><use xlink:href='#u\(levels)'/>"
    }

    private static func nested(_ count: Int) -> String {
        String(repeating: "<g>", count: count) + rect + String(repeating: "</g>", count: count)
    }

    /// Documents that refer to an address in every way of SVG and XML.
    static func external(_ address: String) -> [MalformedImage] {
        @Sendable func entity(_ declaration: String) -> String { "<!DOCTYPE svg [\(declaration)]>" }
        let image = "xlink:href='\(address)' width='60' height='40'"
        return [
            .rendersOrFails(
                "SVG with an entity from \(address)",
                document("\(rect)&e;", before: entity("<!ENTITY e SYSTEM '\(address)'>"))),
            .rendersOrFails(
                "SVG with a parameter entity from \(address)",
                document("\(rect)&f;", before: entity("<!ENTITY % e SYSTEM '\(address)'> %e;"))),
            .rendersOrFails(
                "SVG with a document type from \(address)",
                document("\(rect)&f;", before: "<!DOCTYPE svg SYSTEM '\(address)'>")),
            .rendersOrFails(
                "SVG that includes \(address)",
                document("\(rect)<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='\(address)'/>")),
            .rendersOrFails(
                "SVG that includes text from \(address)",
                document(
                    "\(rect)<text y='20'><xi:include xmlns:xi='http://www.w3.org/2001/XInclude' parse='text' "
                        + "href='\(address)'/></text>")),
            .renders("SVG with an image from \(address)", document("\(rect)<image \(image)/>")),
            .renders(
                "SVG with a filter's image from \(address)",
                document("<filter id='f'><feImage \(image)/></filter><g filter='url(#f)'>\(rect)</g>")),
            .renders(
                "SVG with styles from \(address)",
                document(rect, before: "<?xml-stylesheet type='text/css' href='\(address)'?>")),
            .renders("SVG with an import from \(address)", document("<style>@import '\(address)';</style>\(rect)")),
            .renders(
                "SVG with a font from \(address)",
                document(
                    "<style>@font-face{font-family:f;src:url('\(address)')}</style>\(rect)"
                        + "<text y='20' font-family='f'>f</text>")),
            .renders("SVG with a use from \(address)", document("\(rect)<use xlink:href='\(address)#a'/>")),
            .renders(
                "SVG with a fill from \(address)", document("<rect width='60' height='40' fill='url(\(address)#a)'/>")),
        ]
    }

    /// A gzip file (RFC 1952) of the start of a document, `spaces` spaces, and its end.
    private static func gzipped(_ document: [UInt8], spaces: Int) -> [UInt8] {
        // The checksum is wrong, but only a reader that decompresses everything reaches it.
        [0x1f, 0x8b, 8, 0] + zeros(6) + Zlib.deflated(document.cut(6), 0x20, times: spaces, document.suffix(6))
            + zeros(8)
    }

    static func malformed() -> [MalformedImage] {
        let good = document(rect)
        let blur = "<filter id='f'><feGaussianBlur stdDeviation='1000000'/></filter><g filter='url(#f)'>\(rect)</g>"
        let turbulence = "<filter id='f'><feTurbulence baseFrequency='9' numOctaves='100000'/></filter>"
        return [
            .renders("valid SVG", good),
            .fails("SVG truncated in its first element", good.first(60)),
            .rendersOrFails("SVG truncated in its body", good.cut(15)),
            .rendersOrFails("SVG truncated before its end", good.cut(6)),
            .rendersOrFails("SVG with a billion laughs", document("<text>&l9;</text>", before: laughs(9))),
            .rendersOrFails(
                "SVG with a recursive entity",
                document("<text>&a;</text>", before: "<!DOCTYPE svg [<!ENTITY a '&a;'>]>")
            ),
            .slow("SVG with a billion uses", document(uses(9))),
            .renders("SVG with a use of itself", document("<g id='a'>\(rect)<use xlink:href='#a'/></g>")),
            .renders(
                "SVG with a pattern of itself",
                document(
                    "<pattern id='p' width='9' height='9'><rect width='9' height='9' fill='url(#p)'/></pattern><rect width='60' height='40' fill='url(#p)'/>"
                )),
            .rendersOrFails("SVG 1000 groups deep", document(nested(1000))),
            .rendersOrFails("SVG 200000 groups deep", document(nested(200_000))),
            .rendersOrFails("SVG of a million elements", document(String(repeating: "<g/>", count: 1_000_000)))
                .boundByChild(),
            .tooManyPixels("SVG of 50000×50000", document(rect, sides: "width='50000' height='50000'")),
            .rendersOrFails("SVG of 1e30×1e30", document(rect, sides: "width='1e30' height='1e30'")),
            .rendersOrFails("SVG of zero size", document(rect, sides: "width='0' height='0'")),
            .rendersOrFails("SVG of negative size", document(rect, sides: "width='-60' height='-40'")),
            .rendersOrFails("SVG of NaN and infinite size", document(rect, sides: "width='NaN' height='inf'")),
            .rendersOrFails(
                "SVG with a view of 1e30", document(rect, sides: "width='60' height='40' viewBox='0 0 1e30 1e30'")),
            .rendersOrFails(
                "SVG with a view alone, of 50000×50000", document(rect, sides: "viewBox='0 0 50000 50000'")),
            .renders("SVG with a script", document("<script>while(true){}</script>\(rect)")),
            .renders(
                "SVG with HTML in it",
                document("\(rect)<foreignObject><iframe src='file:///etc/passwd'/></foreignObject>")),
            .rendersOrFails("SVG with a blur of a million", document(blur)),
            .timingOut(
                "SVG of 30000 filters",
                document(
                    "<filter id='f'>\(String(repeating: "<feTurbulence numOctaves='8'/>", count: 30_000))</filter>"
                        + "<g filter='url(#f)'>\(rect)</g>",
                    sides: "width='2000' height='2000' viewBox='0 0 60 40'")),
            .slow(
                "SVG with turbulence of 100000 octaves", document("\(turbulence)<g filter='url(#f)'>\(rect)</g>")),
            .rendersOrFails("gzipped SVG that decompresses to 300 MB", gzipped(document(""), spaces: 300_000_000))
                .boundByChild(),
        ] + external("file:///etc/passwd") + external("http://127.0.0.1:1/a.svg")
            + [
                .rendersOrFails(
                    "SVG with images of /dev/zero",
                    document("\(rect)<image xlink:href='/dev/zero' width='9' height='9'/>"))
            ]
    }
}
