/// A builder of PDFs (ISO 32000) of one page, object by object, with a correct cross-reference table.
enum PDFFile {
    static func document(_ objects: [String]) -> [UInt8] {
        var file = "%PDF-1.4\n"
        var offsets: [Int] = []
        for (index, object) in objects.enumerated() {
            offsets.append(file.utf8.count)
            file += "\(index + 1) 0 obj\n\(object)\nendobj\n"
        }
        let start = file.utf8.count
        let table = offsets.map { offset in String("000000000\(offset)".suffix(10)) + " 00000 n \n" }.joined()
        file += "xref\n0 \(objects.count + 1)\n0000000000 65535 f \n\(table)"
        file += "trailer\n<< /Size \(objects.count + 1) /Root 1 0 R >>\nstartxref\n\(start)\n%%EOF\n"
        return text(file)
    }

    /// A document of one page with a filled rectangle.
    static func page(
        box: String = "0 0 60 40", kids: String = "[3 0 R]", count: Int = 1, content: String = "1 0 0 rg 0 0 30 20 re f"
    ) -> [UInt8] {
        document([
            "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids \(kids) /Count \(count) >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [\(box)] /Contents 4 0 R >>",
            "<< /Length \(content.utf8.count) >>\nstream\n\(content)\nendstream",
        ])
    }

    /// Documents that refer to an address for the content of the page, an image, a page of another document, or the
    /// action on opening.
    static func external(_ address: String) -> [MalformedImage] {
        @Sendable func document(
            action: String = "", page: String = "/Contents 4 0 R", content: String = "1 0 0 rg 0 0 60 40 re f",
            dictionary: String = "", _ more: [String] = []
        ) -> [UInt8] {
            Self.document(
                [
                    "<< /Type /Catalog /Pages 2 0 R \(action) >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
                    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 60 40] \(page) >>",
                    "<< /Length \(content.utf8.count) \(dictionary) >>\nstream\n\(content)\nendstream",
                ] + more)
        }
        let file = "<< /Type /Filespec /FS /URL /F (\(address)) >>"
        let image = "/Type /XObject /Subtype /Image /Width 60 /Height 40 /BitsPerComponent 8 /ColorSpace /DeviceRGB"
        let form = "/Type /XObject /Subtype /Form /BBox [0 0 60 40] /Ref << /F (\(address)) /Page 0 >>"
        let drawn = "1 0 0 rg 0 0 60 40 re f q 60 0 0 40 0 0 cm /X Do Q"
        let page = "/Contents 4 0 R /Resources << /XObject << /X 5 0 R >> >>"
        return [
            .rendersOrFails("PDF with content from \(address)", document(dictionary: "/F (\(address))")),
            .rendersOrFails("PDF with content from the URL \(address)", document(dictionary: "/F \(file)")),
            .rendersOrFails(
                "PDF with an image from \(address)",
                document(
                    page: page, content: drawn, ["<< \(image) /F (\(address)) /Length 0 >>\nstream\n\nendstream"])),
            .rendersOrFails(
                "PDF with a page from \(address)",
                document(page: page, content: drawn, ["<< \(form) /Length 0 >>\nstream\n\nendstream"])),
            .renders(
                "PDF that launches \(address)", document(action: "/OpenAction << /S /Launch /F (\(address)) >>")),
            .renders("PDF that goes to \(address)", document(action: "/OpenAction << /S /GoToR /F (\(address)) >>")),
            .renders("PDF that asks for \(address)", document(action: "/OpenAction << /S /URI /URI (\(address)) >>")),
            .renders(
                "PDF that sends a form to \(address)",
                document(action: "/OpenAction << /S /SubmitForm /F \(file) >>")),
        ]
    }

    static func malformed() -> [MalformedImage] {
        let good = page()
        return [
            .renders("valid PDF", good),
            .fails("PDF with only its signature", good.first(9)),
            .rendersOrFails("PDF truncated in its objects", good.fraction(0.4)),
            .rendersOrFails("PDF truncated in its table", good.fraction(0.8)),
            .rendersOrFails("PDF without its end", good.cut(7)),
            .fails("PDF without pages", page(kids: "[]", count: 0)),
            .rendersOrFails("PDF that declares a billion pages", page(count: 1_000_000_000)),
            .fails("PDF that declares −1 pages", page(kids: "[]", count: -1)),
            .rendersOrFails("PDF with a cycle of pages", page(kids: "[2 0 R]")),
            .tooManyPixels("PDF of 50000×50000", page(box: "0 0 50000 50000")),
            .tooManyPixels("PDF of a billion points per side", page(box: "0 0 1000000000 1000000000")),
            .rendersOrFails("PDF of 1e30×1e30", page(box: "0 0 1e30 1e30")),
            .rendersOrFails("PDF of zero size", page(box: "0 0 0 0")),
            .rendersOrFails("PDF of negative size", page(box: "0 0 -60 -40")),
            .rendersOrFails("PDF 100000 states deep", page(content: String(repeating: "q ", count: 100_000)))
                .boundByChild(),
            .rendersOrFails("PDF with invalid content", page(content: String(repeating: "[<(", count: 10_000))),
            .fails("PDF with an endless table", text("%PDF-1.4\n1 0obj<</<<>>stream\nstartxref58")).boundByChild(),
            .renders(
                "PDF with a script",
                document([
                    "<< /Type /Catalog /Pages 2 0 R /OpenAction << /S /JavaScript /JS (while(true);) >> >>",
                    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
                    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 60 40] >>",
                ])),
            .rendersOrFails("a PDF followed by a JPEG", good + JPEGFile.picture(60, 40)),
            .fails("a PDF after an HTML page", MalformedImage.page + good),
        ] + external("/etc/passwd") + external("http://127.0.0.1:1/a.pdf")
    }
}
