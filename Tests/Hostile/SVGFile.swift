/// SVG documents. They are drawn, so what they may cost is not told by their length.
enum SVGFile {
    /// A document of 60×40.
    static func document(_ body: String, sides: String = "width='60' height='40'", before: String = "") -> [UInt8] {
        text(
            "<?xml version='1.0'?>\(before)<svg xmlns='http://www.w3.org/2000/svg' "
                + "xmlns:xlink='http://www.w3.org/1999/xlink' \(sides)>\(body)</svg>")
    }

    static let rect = "<rect width='60' height='40' fill='red'/>"

    /// Ten of what came before, so many times over.
    private static func laughs(_ levels: Int) -> String {
        let entities = (1...levels).map { level in
            "<!ENTITY l\(level) '\(String(repeating: "&l\(level - 1);", count: 10))'>"
        }
        return "<!DOCTYPE svg [<!ENTITY l0 'ha'>\(entities.joined())]>"
    }

    /// Uses of uses of uses: ten to the power of `levels` rectangles.
    private static func uses(_ levels: Int) -> String {
        let groups = (1...levels).map { level in
            "<g id='u\(level)'>\(String(repeating: "<use xlink:href='#u\(level - 1)'/>", count: 10))</g>"
        }
        return "<defs><g id='u0'>\(rect)</g>\(groups.joined())</defs><use xlink:href='#u\(levels)'/>"
    }

    private static func nested(_ count: Int) -> String {
        String(repeating: "<g>", count: count) + rect + String(repeating: "</g>", count: count)
    }

    private static func external(_ address: String) -> [HostileFile] {
        let entity = "<!DOCTYPE svg [<!ENTITY e SYSTEM '\(address)'>]>"
        return [
            .rendersOrFails(
                "SVG with an entity of \(address)", document("\(rect)<text y='9'>&e;</text>", before: entity)),
            .renders(
                "SVG with an image of \(address)",
                document("\(rect)<image xlink:href='\(address)' width='60' height='40'/>")),
            .renders(
                "SVG with styles of \(address)",
                document(rect, before: "<?xml-stylesheet type='text/css' href='\(address)'?>")),
            .renders("SVG with an import of \(address)", document("<style>@import '\(address)';</style>\(rect)")),
            .renders("SVG with a use of \(address)", document("\(rect)<use xlink:href='\(address)#a'/>")),
        ]
    }

    static func hostile() -> [HostileFile] {
        let good = document(rect)
        let blur = "<filter id='f'><feGaussianBlur stdDeviation='1000000'/></filter><g filter='url(#f)'>\(rect)</g>"
        let turbulence = "<filter id='f'><feTurbulence baseFrequency='9' numOctaves='100000'/></filter>"
        return [
            .renders("SVG as it should be", good),
            .fails("SVG cut in its first element", good.first(60)),
            .rendersOrFails("SVG cut in its body", good.cut(15)),
            .rendersOrFails("SVG cut before its end", good.cut(6)),
            .rendersOrFails("SVG of a thousand million laughs", document("<text>&l9;</text>", before: laughs(9))),
            .rendersOrFails(
                "SVG of an entity in itself", document("<text>&a;</text>", before: "<!DOCTYPE svg [<!ENTITY a '&a;'>]>")
            ),
            .rendersOrFails("SVG of a thousand million uses", document(uses(9))),
            .renders("SVG with a use of itself", document("<g id='a'>\(rect)<use xlink:href='#a'/></g>")),
            .renders(
                "SVG with a pattern of itself",
                document(
                    "<pattern id='p' width='9' height='9'><rect width='9' height='9' fill='url(#p)'/></pattern><rect width='60' height='40' fill='url(#p)'/>"
                )),
            .rendersOrFails("SVG 1000 groups deep", document(nested(1000))),
            .rendersOrFails("SVG 200000 groups deep", document(nested(200_000))),
            .rendersOrFails("SVG of a million elements", document(String(repeating: "<g/>", count: 1_000_000))),
            .tooManyPixels("SVG of 50000×50000", document(rect, sides: "width='50000' height='50000'")),
            .rendersOrFails("SVG of 1e30×1e30", document(rect, sides: "width='1e30' height='1e30'")),
            .rendersOrFails("SVG of no sides", document(rect, sides: "width='0' height='0'")),
            .rendersOrFails("SVG of negative sides", document(rect, sides: "width='-60' height='-40'")),
            .rendersOrFails("SVG of sides that are no numbers", document(rect, sides: "width='NaN' height='inf'")),
            .rendersOrFails(
                "SVG with a view of 1e30", document(rect, sides: "width='60' height='40' viewBox='0 0 1e30 1e30'")),
            .rendersOrFails(
                "SVG with a view alone, of 50000×50000", document(rect, sides: "viewBox='0 0 50000 50000'")),
            .renders("SVG with a script", document("<script>while(true){}</script>\(rect)")),
            .renders(
                "SVG with HTML in it",
                document("\(rect)<foreignObject><iframe src='file:///etc/passwd'/></foreignObject>")),
            .rendersOrFails("SVG with a blur of a million", document(blur)),
            .rendersOrFails(
                "SVG with turbulence of 100000 octaves", document("\(turbulence)<g filter='url(#f)'>\(rect)</g>")),
        ] + external("file:///etc/passwd") + external("http://127.0.0.1:1/a.svg")
            + [
                .rendersOrFails(
                    "SVG with images of /dev/zero",
                    document("\(rect)<image xlink:href='/dev/zero' width='9' height='9'/>"))
            ]
    }
}
