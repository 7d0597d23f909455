import Glibc
import HalcyonImaging
import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import MalformedImages

/// Documents that refer to other files. No file is opened, no connection is made, and their content is not rendered.
@Suite(.limitedParallelism) struct ExternalReferenceTests {
    private static let green = [0, 255, 0]

    /// Files of every kind that a document can refer to. Each would make an image green.
    private static func markers() async throws -> [(name: String, bytes: [UInt8])] {
        let pixels = (0..<60 * 40).flatMap { _ in [0, 255, 0] as [UInt8] }
        let image = try await onRenderThread {
            try Image(pixels: pixels, width: 60, height: 40, bands: 3).encoded(as: .png)
        }
        let rect = "<rect width='60' height='40' fill='#0f0'/>"
        return [
            ("a.png", image), ("a.svg", SVGFile.document("<g id='a'>\(rect)</g>")),
            ("a.css", text("rect { fill: #0f0 !important }")), ("a.xml", text(rect)), ("a.raw", pixels),
            ("a.content", text("0 1 0 rg 0 0 60 40 re f")), ("a.dtd", text("<!ENTITY f \"\(rect)\">")),
        ]
    }

    /// All documents that refer to `address`.
    private static func documents(_ address: String) -> [MalformedImage] {
        SVGFile.external(address) + PDFFile.external(address)
    }

    /// Expects an image without green, or a failure because of the missing file.
    private func expectNoGreen(_ file: MalformedImage) async throws {
        let variant = Variant(sizing: Sizing(goal: .original), output: OutputOptions(format: .png))
        do {
            let picture = try await renderedPixels(file.bytes(), variant)
            for y in 0..<picture.height {
                for x in 0..<picture.width where Array(picture[x, y].prefix(3)) == Self.green {
                    Issue.record("\(file): green at \(x), \(y)")
                    return
                }
            }
        } catch let failure as JobError {
            #expect(failure.code == .corruptImage, "\(file): \(failure)")
        }
    }

    @Test func opensNoFile() async throws {
        let folder = TemporaryFolder("references")
        let watch = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        try #require(watch >= 0)
        defer { close(watch) }
        let markers = try await Self.markers().map { folder.write($0.bytes, to: $0.name) }
        for path in markers { try #require(inotify_add_watch(watch, path, UInt32(IN_OPEN)) >= 0) }
        func opened() -> Bool {
            var events = [UInt8](repeating: 0, count: 1 << 12)
            return read(watch, &events, events.count) > 0
        }
        for path in markers {
            for address in [path, "file://\(path)", "../../../../../../../../../..\(path)"] {
                for file in Self.documents(address) {
                    try await expectNoGreen(file)
                    #expect(!opened(), "\(file)")
                }
            }
        }
        // The watch does report an open file.
        _ = folder.read("a.png")
        #expect(opened())
        await folder.remove()
    }

    @Test func makesNoConnection() async throws {
        let markers = try await Self.markers()
        let origin = RawOrigin { request in
            let bytes = markers.first { request.path == "/\($0.name)" }?.bytes ?? []
            return [.text("HTTP/1.1 200 OK\r\nContent-Length: \(bytes.count)\r\n\r\n"), .bytes(bytes), .close]
        }
        for marker in markers {
            for file in Self.documents(origin.url("/\(marker.name)")) { try await expectNoGreen(file) }
        }
        #expect(origin.connections == 0)
        try await origin.stop()
    }

    @Test func rendersEmbeddedContent() async throws {
        let image = try #require(try await Self.markers().first).bytes
        let variant = Variant(sizing: Sizing(goal: .original), output: OutputOptions(format: .png))
        let inside = SVGFile.document(
            "\(SVGFile.rect)<image xlink:href='data:image/png;base64,\(image.base64)' width='60' height='40'/>")
        #expect(try await Array(renderedPixels(inside, variant)[30, 20].prefix(3)) == Self.green)
        #expect(
            try await Array(renderedPixels(PDFFile.page(content: "0 1 0 rg 0 0 60 40 re f"), variant)[30, 20].prefix(3))
                == Self.green)
    }
}

extension [UInt8] {
    /// The bytes in Base64 (RFC 4648, section 4).
    fileprivate var base64: String {
        let letters = [Character]("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        return stride(from: 0, to: count, by: 3).reduce(into: "") { text, offset in
            let group = self[offset..<Swift.min(offset + 3, count)]
            let bits = (Array(group) + [0, 0]).prefix(3).reduce(0) { $0 << 8 | Int($1) }
            for index in 0..<4 {
                let letter: Character = index <= group.count ? letters[bits >> (18 - 6 * index) & 63] : "="
                text.append(letter)
            }
        }
    }
}
