import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// Sources in vector formats: SVG and PDF.
@Suite(.limitedParallelism) struct VectorSourceTests {
    /// 20×10 units: the left half red, the right half blue, with a sharp edge.
    static let svg = Array(
        """
        <svg xmlns="http://www.w3.org/2000/svg" width="20" height="10"><rect width="10" height="10" fill="red"/>\
        <rect x="10" width="10" height="10" fill="blue"/></svg>
        """.utf8)

    /// The same image as a PDF page of 20×10 points.
    static let pdf = pdf("20 10")

    static func pdf(_ corner: String) -> [UInt8] {
        let content = "1 0 0 rg 0 0 10 10 re f 0 0 1 rg 10 0 10 10 re f"
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 \(corner)] /Contents 4 0 R >>",
            "<< /Length \(content.utf8.count) >>\nstream\n\(content)\nendstream",
        ]
        var text = "%PDF-1.4\n"
        var offsets: [Int] = []
        for (index, object) in objects.enumerated() {
            offsets.append(text.utf8.count)
            text += "\(index + 1) 0 obj\n\(object)\nendobj\n"
        }
        let table = text.utf8.count
        text += "xref\n0 5\n0000000000 65535 f \n"
        for offset in offsets {
            let digits = String(offset)
            text += String(repeating: "0", count: 10 - digits.count) + digits + " 00000 n \n"
        }
        text += "trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n\(table)\n%%EOF\n"
        return Array(text.utf8)
    }

    @Test(arguments: [svg, pdf])
    func rasterizesAtTheOutputSize(_ source: [UInt8]) async throws {
        let rendering = try await render(source, [filling(1000, 500, as: nil)])
        #expect(rendering.sourceSize == PixelSize(width: 20, height: 10))
        #expect(rendering.images[0].format == .png)
        let pixels = try Pixels(rendering.images[0].body)
        #expect((pixels.width, pixels.height) == (1000, 500))
        // Enlarged from 20 pixels the edge would be 50 pixels wide.
        #expect(pixels[497, 250].prefix(3) == [255, 0, 0] && pixels[502, 250].prefix(3) == [0, 0, 255])
    }

    @Test(arguments: [svg, pdf])
    func rasterizesCropsAtTheOutputSize(_ source: [UInt8]) async throws {
        var variant = filling(300, 300)
        variant.sizing.cropRect = CropRect(x: 0.25, y: 0, width: 0.5, height: 1)
        let images = try await render(source, [variant, filling(10, 10)]).images
        let pixels = try Pixels(images[0].body)
        #expect(pixels[146, 150].prefix(3) == [255, 0, 0] && pixels[153, 150].prefix(3) == [0, 0, 255])
        #expect(images[1].size == PixelSize(width: 10, height: 10))
    }

    @Test func limitsTheRasterizedSize() async throws {
        await #expect(throws: JobError.self) {
            try await render(Self.svg, filling(8000, 4000), limits: ImageLimits(decodedBytes: 100 << 20))
        }
    }

    @Test(arguments: [
        pdf("1000000000 1000000000"), pdf("30000000 10"),
        Array(#"<svg xmlns="http://www.w3.org/2000/svg" width="1000000000" height="10"/>"#.utf8),
    ])
    func rejectsHugeSizesAsTooManyPixels(_ source: [UInt8]) async {
        #expect(await InvalidInputTests().failure(source)?.code == .tooManyPixels)
    }

    @Test func rendersASourceThatIsOnePixelWide() async throws {
        let dot = Array(#"<svg xmlns="http://www.w3.org/2000/svg" width="1" height="2000"/>"#.utf8)
        #expect(try await render(dot, filling(1, 1)).size == PixelSize(width: 1, height: 1))
    }
}
