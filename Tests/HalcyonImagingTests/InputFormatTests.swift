import Foundation
import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// BMP, ICO and JPEG 2000, and pages of documents and animations, compared with what Pillow reads.
@Suite(.limitedParallelism) struct InputFormatTests {
    /// Writes pictures to the folder in its argument, and prints the pixels of each as Pillow reads them.
    private static let pillow = #"""
        import base64, json, pathlib, struct, sys
        from PIL import Image, ImageDraw
        folder = pathlib.Path(sys.argv[1])
        picture = Image.effect_mandelbrot((45, 31), (-2, -1, 1, 1), 50).convert("RGB")
        draw = ImageDraw.Draw(picture)
        draw.rectangle((3, 2, 20, 9), fill="red")
        draw.rectangle((22, 12, 44, 20), fill=(10, 200, 90))
        soft = picture.convert("RGBA")
        soft.putalpha(Image.linear_gradient("L").resize(picture.size))

        def bmp(bits, rows, palette=b"", masks=b"", compression=0, size=40, top_down=False, colors=0, width=45, height=31):
            rows = [row + bytes(-len(row) % 4) for row in rows]
            body = b"".join(rows if top_down else reversed(rows))
            header = struct.pack("<IiiHHIIiiII", size, width, -height if top_down else height, 1, bits, compression, len(body), 0, 0, colors, 0)
            if size > 40:
                header += masks + bytes(size - 40 - len(masks))
                masks = b""
            start = 14 + len(header) + len(masks) + len(palette)
            return b"BM" + struct.pack("<IHHI", start + len(body), 0, 0, start) + header + masks + palette + body

        pixels = picture.load()
        lines = [[pixels[x, y] for x in range(45)] for y in range(31)]
        words = lambda pack: [b"".join(struct.pack("<H", pack(*p)) for p in line) for line in lines]
        files = {
            "rgb.bmp": picture, "gray.bmp": picture.convert("L"), "one.bmp": picture.convert("1"), "palette.bmp": picture.quantize(200),
            "rgba.bmp": soft, "rgb.ico": picture.resize((32, 32)), "soft.ico": soft.resize((48, 48)),
        }
        for name, image in files.items():
            options = {"sizes": [(16, 16), image.size], "bitmap_format": "bmp"} if name.endswith("ico") else {}
            image.save(folder / name, **options)
        soft.resize((64, 64)).save(folder / "png.ico", sizes=[(64, 64), (16, 16)])
        picture.resize((32, 32)).quantize(16).save(folder / "masked.ico", sizes=[(32, 32)], bitmap_format="bmp")
        picture.save(folder / "rgb.jp2", irreversible=False)
        soft.save(folder / "rgba.jp2", irreversible=False)
        picture.convert("L").save(folder / "gray.jp2", irreversible=False)
        picture.save(folder / "stream.j2k", irreversible=False, no_jp2=True)
        four = picture.quantize(16)
        index = four.load()
        table = four.getpalette("RGB")
        table = b"".join(bytes([table[i + 2], table[i + 1], table[i], 0]) for i in range(0, len(table), 3))
        nibbles = [bytes((index[x, y] << 4) | (index[x + 1, y] if x < 44 else 0) for x in range(0, 45, 2)) for y in range(31)]
        (folder / "four.bmp").write_bytes(bmp(4, nibbles, table, colors=len(table) // 4))
        (folder / "five.bmp").write_bytes(bmp(16, words(lambda r, g, b: r >> 3 << 10 | g >> 3 << 5 | b >> 3)))
        (folder / "six.bmp").write_bytes(bmp(16, words(lambda r, g, b: r >> 3 << 11 | g >> 2 << 5 | b >> 3), masks=struct.pack("<III", 0xf800, 0x7e0, 0x1f), compression=3))
        (folder / "down.bmp").write_bytes(bmp(24, [b"".join(bytes(p[::-1]) for p in line) for line in lines], top_down=True))
        (folder / "unused.bmp").write_bytes(bmp(32, [b"".join(bytes(p[::-1]) + b"\x07" for p in line) for line in lines]))
        order = [b"".join(bytes([p[0], p[1], p[2], 200]) for p in line) for line in lines]
        (folder / "order.bmp").write_bytes(bmp(32, order, masks=struct.pack("<IIII", 0xff, 0xff00, 0xff0000, 0xff000000), compression=3, size=108))
        short = b"BM" + struct.pack("<IHHI", 0, 0, 0, 26 + 6) + struct.pack("<IHHHH", 12, 45, 31, 1, 1) + bytes([255, 0, 0, 0, 255, 255])
        bits = picture.convert("1")
        (folder / "os2.bmp").write_bytes(short + b"".join((bits.crop((0, y, 45, y + 1)).tobytes() + bytes(8))[:8] for y in reversed(range(31))))
        found = {}
        for path in sorted(folder.iterdir()):
            image = Image.open(path)
            found[path.name] = {"format": image.format, "size": image.size, "pixels": base64.b64encode(image.convert("RGBA").tobytes()).decode()}
        print(json.dumps(found))
        """#

    static func rgba(_ image: RenderedImage) async throws -> [UInt8] {
        try await onRenderThread {
            let picture = try EncodedImage(image.body).open()
            let pixels = try picture.pixels()
            return (0..<picture.width * picture.height).flatMap { (index: Int) -> [UInt8] in
                let pixel = pixels[index * picture.bands..<(index + 1) * picture.bands]
                let first = pixel.startIndex
                return picture.bands < 3
                    ? [pixel[first], pixel[first], pixel[first], picture.bands == 2 ? pixel[first + 1] : 255]
                    : [pixel[first], pixel[first + 1], pixel[first + 2], picture.bands == 4 ? pixel[first + 3] : 255]
            }
        }
    }

    static let natural = Variant(sizing: Sizing(goal: .original), output: OutputOptions(format: .png))

    static func page(_ page: Int, frames: Int? = nil) -> Variant {
        var variant = natural
        variant.page = page
        variant.output.format = frames == 1 ? .png : nil
        variant.output.frames = frames
        return variant
    }

    @Test func pixelsAreThoseThatPillowReads() async throws {
        let folder = TemporaryFolder("inputs")
        let expected = try await InfoTests.python(Self.pillow, [folder.path])
        #expect(expected.count == 20)
        for case (let name as String, let fact as NSDictionary) in expected {
            let source = Array(try Data(contentsOf: URL(filePath: "\(folder.path)/\(name)")))
            let image = try await render(source, Self.natural)
            let size = try #require(fact["size"] as? [Int])
            #expect([image.size.width, image.size.height] == size, "\(name)")
            let text = try #require(fact["pixels"] as? String)
            let wanted = Array(try #require(Data(base64Encoded: text)))
            let found = try await Self.rgba(image)
            try #require(found.count == wanted.count)
            // Channels of five and six bits are rounded, and Pillow truncates them. Colors below alpha 0 do not matter.
            let farthest = wanted.indices.map { index in
                wanted[index | 3] == 0 && index & 3 != 3 ? 0 : abs(Int(found[index]) - Int(wanted[index]))
            }.max()
            #expect(farthest ?? 256 <= 1, "\(name): \(farthest ?? 0)")
            let format = name.hasSuffix("bmp") ? "bmp" : name.hasSuffix("ico") ? "ico" : "jp2"
            let info = try await InfoTests.facts(source)
            #expect(info["format"] as? String == format && info["bytes"] as? Int == source.count, "\(name)")
            #expect(info["width"] as? Int == size[0] && info["height"] as? Int == size[1], "\(name)")
            // The format that follows from the source.
            let automatic = try await render(source, Variant(sizing: Sizing(goal: .original)))
            #expect(
                automatic.format == (name.contains("jp2") && name != "rgba.jp2" || name.contains("j2k") ? .jpeg : .png))
            // Only JPEG 2000 needs a library that may not be cancelled.
            #expect(Codecs.isApart(try EncodedImage(source).format) == (format == "jp2"))
        }
        await folder.remove()
    }

    /// A BMP file of 4×3 pixels.
    static func bitmap(
        bits: Int = 24, compression: Int = 0, width: Int = 4, height: Int = 3, size: Int = 40, start: Int? = nil,
        colors: Int = 0, rows: Int = 3
    ) -> [UInt8] {
        func little(_ number: Int, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
        }
        let palette =
            bits <= 8 ? [UInt8](repeating: 200, count: 4 * (colors == 0 ? 1 << bits : min(colors, 1 << bits))) : []
        var file: [UInt8] = Array("BM".utf8) + little(0, 8) + little(start ?? 54 + palette.count, 4)
        file += little(size, 4) + little(width, 4) + little(height, 4) + [1, 0] + little(bits, 2)
        file += little(compression, 4) + little(0, 12) + little(colors, 4) + little(0, 4)
        return file + palette + [UInt8](repeating: 100, count: rows * ((4 * bits + 31) / 32 * 4))
    }

    static func failure(_ source: [UInt8], _ variant: Variant = natural) async -> JobError? {
        await InvalidInputTests().failure(source, variant)
    }

    @Test(arguments: [1, 4, 8, 16, 24, 32]) func rendersEveryDepth(_ bits: Int) async throws {
        let image = try await render(Self.bitmap(bits: bits), Self.natural)
        #expect(image.size == PixelSize(width: 4, height: 3))
        #expect(await Self.failure(Self.bitmap(bits: bits, height: -3)) == nil)
    }

    @Test(arguments: [
        (bitmap(width: 0), "0×3"), (bitmap(width: -4), "-4×3"), (bitmap(height: 0), "4×0"),
        (bitmap(width: 0x7fff_ffff), "pixels"), (bitmap(height: -0x8000_0000), "pixels"),
        (bitmap(width: 9_000_000), "too long"), (bitmap(height: 9_000_000), "rows"),
        (bitmap(start: 10), "outside"), (bitmap(start: 1 << 31), "outside"), (bitmap(start: 53), "outside"),
        (bitmap(rows: 2), "2 of 3 rows"), (Array(bitmap().prefix(30)), "header"),
    ]) func rejectsMalformedBitmaps(_ file: [UInt8], _ words: String) async throws {
        let error = await Self.failure(file)
        #expect(error?.code == .corruptImage && error?.message.contains(words) == true, "\(String(describing: error))")
    }

    @Test(arguments: [
        (bitmap(bits: 8, compression: 1), "run-length encoding"), (bitmap(bits: 4, compression: 2), "run-length"),
        (bitmap(bits: 2), "2 bits per pixel"), (bitmap(bits: 0), "0 bits"), (bitmap(bits: 64), "64 bits"),
        (bitmap(compression: 4), "unknown compression (4)"), (bitmap(bits: 16, compression: 3, start: 66), "bit masks"),
        (bitmap(bits: 32, compression: 3, start: 66), "bit masks"),
    ]) func namesFeaturesThatAreNotSupported(_ file: [UInt8], _ words: String) async throws {
        let error = await Self.failure(file + [UInt8](repeating: 0, count: 64))
        #expect(
            error?.code == .unsupportedFormat && error?.message.contains(words) == true, "\(String(describing: error))")
    }

    /// Indices beyond the palette are black.
    @Test func indicesBeyondThePaletteAreBlack() async throws {
        let image = try await render(Self.bitmap(bits: 8, colors: 2), Self.natural)
        #expect(try await Self.rgba(image).prefix(4) == [0, 0, 0, 255])
        let grey = try await render(Self.bitmap(bits: 1, colors: 1), Self.natural)
        #expect(grey.size == PixelSize(width: 4, height: 3))
        #expect(await Self.failure(Self.bitmap(bits: 8, colors: 0x7fff_ffff)) == nil)
    }

    @Test func toleratesTruncatedBitmaps() async throws {
        for (height, missing) in [(3, 0), (-3, 2)] {
            let file = Self.bitmap(height: height, rows: 2)
            let rendering = try await render(file, [InvalidInputTests.tolerant(Self.natural)])
            #expect(rendering.sourceIsTruncated)
            let pixels = try await Self.rgba(rendering.images[0])
            for row in 0..<3 { #expect(pixels[row * 16] == (row == missing ? 0 : 100), "row \(row)") }
        }
        let empty = try await render(Self.bitmap(rows: 0), [InvalidInputTests.tolerant(Self.natural)])
        #expect(empty.images[0].size == PixelSize(width: 4, height: 3))
        // A small file cannot claim a large picture.
        let huge = InvalidInputTests.tolerant(Self.natural)
        #expect(
            await Self.failure(Self.bitmap(bits: 1, width: 9_000_000, height: 9_000_000), huge)?.code == .tooManyPixels)
        #expect(try await InfoTests.facts(Self.bitmap(rows: 1))["truncated"] as? Bool == true)
    }

    @Test func rejectsMalformedIcons() async throws {
        let picture = Array(Self.bitmap(height: 6).dropFirst(14))
        func icon(_ picture: [UInt8], size: Int? = nil, position: Int = 22) -> [UInt8] {
            func little(_ number: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) } }
            return [0, 0, 1, 0, 1, 0, 4, 3, 0, 0, 1, 0, 24, 0] + little(size ?? picture.count) + little(position)
                + picture
        }
        #expect(await Self.failure(icon(picture)) == nil)
        #expect(await Self.failure(icon(picture, position: 4000))?.code == .corruptImage)
        #expect(await Self.failure(icon(Array(picture.dropLast(20))))?.code == .corruptImage)
        #expect(await Self.failure(icon([40, 0, 0, 0]))?.code == .corruptImage)
        #expect(await Self.failure(icon([0x89, 0x50, 0x4e, 0x47, 1, 2, 3, 4]))?.code == .corruptImage)
        // The size in the directory does not matter, and a file inside an icon is a PNG.
        #expect(await Self.failure(icon(picture, size: 1)) == nil)
        #expect(await Self.failure(icon(icon(picture)))?.code == .corruptImage)
        #expect(await Self.failure([0, 0, 1, 0, 0xff, 0xff] + icon(picture).dropFirst(6))?.code == .unsupportedFormat)
    }

    /// Mutated headers end in an image or an error, never in a crash.
    @Test func survivesMutatedHeaders() async throws {
        var generator = SeededNumbers(seed: 3)
        for base in [Self.bitmap(), Self.bitmap(bits: 8, colors: 7), Self.bitmap(bits: 16), Self.bitmap(bits: 1)] {
            for _ in 0..<400 {
                var file = base
                for _ in 0..<Int.random(in: 1...3, using: &generator) {
                    let place = Int.random(in: 10..<54, using: &generator)
                    file[place] = [0, 1, 2, 40, 127, 128, 255, UInt8.random(in: 0...255, using: &generator)]
                        .randomElement(using: &generator)!
                }
                file.removeLast(Int.random(in: 0...8, using: &generator))
                let limits = ImageLimits(sourcePixels: 1_000_000, decodedBytes: 64 << 20, outputPixels: 1_000_000)
                let error = await InvalidInputTests().failure(file, InvalidInputTests.tolerant(Self.natural), limits)
                let codes: [JobErrorCode] = [.corruptImage, .unsupportedFormat, .tooManyPixels]
                #expect(error.map { codes.contains($0.code) } ?? true, "\(file): \(String(describing: error))")
            }
        }
    }

    // MARK: Pages

    /// Writes documents and animations, and prints the size and the color of each page as Pillow reads them.
    private static let pages = #"""
        import json, pathlib, sys
        from PIL import Image
        folder = pathlib.Path(sys.argv[1])
        colors = [(250, 0, 0), (0, 130, 0), (0, 0, 240), (200, 180, 20)]
        frames = [Image.new("RGB", (40, 30), color) for color in colors]
        documents = [Image.new("RGB", (40 + 10 * i, 30), color) for i, color in enumerate(colors)]
        times = [100, 250, 40, 70]
        frames[0].save(folder / "a.gif", save_all=True, append_images=frames[1:], duration=times, loop=0)
        frames[0].save(folder / "a.webp", save_all=True, append_images=frames[1:], duration=times, loop=0, lossless=True)
        documents[0].save(folder / "a.tif", save_all=True, append_images=documents[1:])
        documents[0].save(folder / "a.pdf", save_all=True, append_images=documents[1:], quality=98)
        found = {"a.pdf": [[image.size, color] for image, color in zip(documents, colors)]}
        for name in ("a.gif", "a.webp", "a.tif"):
            image, pages = Image.open(folder / name), []
            for index in range(image.n_frames):
                image.seek(index)
                pages.append([image.size, image.convert("RGB").getpixel((20, 15))])
            found[name] = pages
        print(json.dumps(found))
        """#

    @Test func pagesAreThoseThatPillowReads() async throws {
        let folder = TemporaryFolder("pages")
        let expected = try await InfoTests.python(Self.pages, [folder.path])
        #expect(expected.count == 4)
        for case (let name as String, let pages as [[[Int]]]) in expected {
            let source = Array(try Data(contentsOf: URL(filePath: "\(folder.path)/\(name)")))
            // All pages in one job, the last one twice.
            let numbers = [1, 2, 3, 4, 4]
            let together = try await render(source, numbers.map { Self.page($0, frames: 1) })
            for (number, image) in zip(numbers, together.images) {
                let page = pages[number - 1]
                #expect([image.size.width, image.size.height] == page[0], "\(name) \(number)")
                #expect(image.sourceSize == image.size && image.frames == nil)
                let pixels = try await Self.rgba(image)
                let middle = 4 * (15 * image.size.width + 20)
                for channel in 0..<3 {
                    #expect(abs(Int(pixels[middle + channel]) - page[1][channel]) <= 4, "\(name) \(number)")
                }
                #expect(try await render(source, Self.page(number, frames: 1)).sha256 == image.sha256)
            }
            let error = await Self.failure(source, Self.page(5, frames: 1))
            #expect(error?.code == .invalidJob, "\(String(describing: error))")
            let kind = name == "a.pdf" || name == "a.tif" ? "page" : "frame"
            #expect(error?.message == "page: there is no \(kind) 5; the source has 4 \(kind)s")
            #expect(await Self.failure(source, Self.page(65_535))?.code == .invalidJob)
            // Facts are those of the page.
            var facts = InfoTests.variant([.dominantColor])
            facts.page = 3
            let info = try await InfoTests.facts(source, facts)
            #expect(info["width"] as? Int == pages[2][0][0] && info[kind + "s"] as? Int == 4, "\(name)")
        }
        await folder.remove()
    }

    /// An animation continues from the page, with the durations of its frames.
    @Test func animationsStartAtThePage() async throws {
        let folder = TemporaryFolder("pages")
        _ = try await InfoTests.python(Self.pages, [folder.path])
        for name in ["a.gif", "a.webp"] {
            let source = Array(try Data(contentsOf: URL(filePath: "\(folder.path)/\(name)")))
            for (page, frames, delays) in [
                (2, nil, [250, 40, 70]), (3, 1, []), (2, 2, [250, 40]), (4, 9, []), (1, nil, [100, 250, 40, 70]),
            ] {
                let image = try await render(source, Self.page(page, frames: frames))
                #expect(image.frames == (delays.isEmpty ? nil : delays.count), "\(name) \(page)")
                let found = try await onRenderThread { try EncodedImage(image.body).open().frameDelays }
                #expect(found.count <= 1 || found == delays, "\(name) \(page)")
            }
            // The file of the source contains other frames too.
            let whole = try await render(source, Self.page(1))
            let part = try await render(source, Self.page(2))
            #expect(whole.frames == 4 && part.frames == 3)
            // Limits count the frames from the page on.
            let limits = ImageLimits(frames: 2)
            #expect(await InvalidInputTests().failure(source, Self.page(3), limits) == nil)
            #expect(await InvalidInputTests().failure(source, Self.page(2), limits)?.code == .tooManyPixels)
        }
        await folder.remove()
    }

    @Test func stillImagesHaveOnePage() async throws {
        let photo = try await InvalidInputTests.photo(.jpeg)
        #expect(await Self.failure(photo, Self.page(1)) == nil)
        let error = await Self.failure(photo, Self.page(2))
        #expect(error?.code == .invalidJob && error?.message == "page: there is no page 2; the source has 1 page")
        let result = try await render(photo, [Self.page(1)])
        #expect(result.sourceSize == PixelSize(width: 640, height: 480))
    }
}
