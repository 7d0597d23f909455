import Foundation
import HalcyonModel
import Subprocess
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// Facts about sources, compared with those that Pillow reads.
@Suite(.limitedParallelism) struct InfoTests {
    /// Writes pictures to the folder in its argument, and prints the facts about each as Pillow reads them.
    private static let pillow = #"""
        import io, json, pathlib, sys
        from PIL import Image, ImageCms, TiffImagePlugin
        folder = pathlib.Path(sys.argv[1])
        R = TiffImagePlugin.IFDRational
        picture = Image.effect_mandelbrot((90, 60), (-2, -1, 1, 1), 50).convert("RGB")
        exif = Image.Exif()
        exif[0x010f], exif[0x0110], exif[0x0131], exif[0x013b] = "Halcyon", "Model é", "darkroom", "A. Photographer"
        exif[0x8298], exif[0x0112], exif[0xa431] = "(c) 2026", 6, "serial 4711"
        photo = exif.get_ifd(0x8769)
        photo[0x829a], photo[0x829d], photo[0x8827], photo[0x920a] = R(1, 125), R(28, 10), 400, R(35, 1)
        photo[0x9204], photo[0xa405], photo[0x9209], photo[0xa434] = R(-1, 3), 52, 25, "35mm F2"
        photo[0x9003], photo[0x9011], photo[0xa431] = "2026:05:01 12:34:56", "+02:00", "serial 4711"
        place = exif.get_ifd(0x8825)
        place[1], place[2], place[3], place[4] = "S", (R(33, 1), R(51, 1), R(3150, 100)), "E", (R(151, 1), R(12, 1), R(3600, 100))
        place[5], place[6] = b"\x01", R(125, 10)
        profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        frames = [Image.new("RGB", (40, 30), color) for color in ("red", "green", "blue")]
        save = lambda name, image, **options: image.save(folder / name, **options)
        save("exif.jpg", picture, exif=exif, icc_profile=profile)
        save("exif.png", picture, exif=exif)
        save("exif.webp", picture, exif=exif, icc_profile=profile)
        save("plain.jpg", picture)
        save("progressive.jpg", picture, progressive=True)
        save("gray.jpg", picture.convert("L"))
        save("cmyk.jpg", picture.convert("CMYK"))
        save("alpha.png", picture.convert("RGBA"))
        save("gray-alpha.png", picture.convert("LA"))
        save("deep.png", Image.new("I;16", (20, 10), 3000))
        save("palette.png", picture.quantize(16))
        save("still.gif", picture)
        save("moving.gif", frames[0], save_all=True, append_images=frames[1:], duration=[100, 250, 40], loop=3)
        save("moving.webp", frames[0], save_all=True, append_images=frames[1:], duration=[100, 250, 40], loop=0)
        save("pages.tif", frames[0], save_all=True, append_images=frames[1:])
        save("pages.pdf", frames[0], save_all=True, append_images=frames[1:])
        save("picture.avif", picture, quality=60)
        facts = {}
        for path in sorted(folder.iterdir()):
            fact = facts[path.name] = {"bytes": path.stat().st_size}
            if path.suffix == ".pdf":
                fact |= {"format": "pdf", "pages": 3}
                continue
            image = Image.open(path)
            turn = image.getexif().get(0x0112, 1)
            size = image.size[::-1] if turn >= 5 else image.size
            fact |= {"format": image.format.lower(), "width": size[0], "height": size[1], "orientation": turn}
            fact["mediaType"] = Image.MIME[image.format]
            mode = image.mode
            fact["colorSpace"] = {"L": "gray", "LA": "gray", "I;16": "gray", "CMYK": "cmyk"}.get(mode, "rgb")
            fact["alpha"] = mode.endswith("A")
            fact["bitsPerSample"] = 16 if mode == "I;16" else 8
            count = getattr(image, "n_frames", 1)
            if count > 1 and image.format in ("GIF", "WEBP"):
                durations, alpha, data = [], image.mode.endswith("A"), path.read_bytes()
                if image.format == "GIF":
                    # Frames have a transparent color where nothing changes, which Pillow resolves.
                    alpha = any(block[1] & 1 for block in data.split(b"\x21\xf9")[1:])
                for index in range(count):
                    image.seek(index)
                    image.load()
                    durations.append(image.info["duration"])
                # A GIF stores the number of repetitions.
                loop = image.info["loop"] + (image.format == "GIF" and image.info["loop"] > 0)
                fact |= {"frames": count, "duration": int(sum(durations)), "loop": loop, "alpha": alpha}
            elif image.format == "TIFF":
                fact["pages"] = count
            if "icc_profile" in image.info:
                name = ImageCms.getProfileDescription(ImageCms.ImageCmsProfile(io.BytesIO(image.info["icc_profile"])))
                fact["profile"] = {"name": name.strip(), "colorSpace": "RGB"}
            read = image.getexif()
            if 0x010f in read:
                photo, place = read.get_ifd(0x8769), read.get_ifd(0x8825)
                degrees = lambda parts: float(parts[0]) + float(parts[1]) / 60 + float(parts[2]) / 3600
                fact["exif"] = {
                    "make": read[0x010f], "model": read[0x0110], "software": read[0x0131], "artist": read[0x013b],
                    "copyright": read[0x8298], "lensModel": photo[0xa434], "exposureTime": float(photo[0x829a]),
                    "fNumber": float(photo[0x829d]), "iso": photo[0x8827], "focalLength": float(photo[0x920a]),
                    "exposureBias": float(photo[0x9204]), "focalLengthIn35mmFilm": photo[0xa405],
                    "flash": bool(photo[0x9209] & 1),
                    "dateTimeOriginal": photo[0x9003].replace(":", "-", 2).replace(" ", "T") + photo[0x9011],
                }
                fact["location"] = {
                    "latitude": round(-degrees(place[2]), 7), "longitude": round(degrees(place[4]), 7),
                    "altitude": -float(place[6]),
                }
        print(json.dumps(facts))
        """#

    static func variant(_ findings: Set<AnalysisKind> = [], location: Bool = false) -> Variant {
        Variant(
            sizing: Sizing(goal: .sizer(.natural)), findings: findings, info: InfoOptions(location: location))
    }

    static func facts(_ image: RenderedImage) throws -> NSDictionary {
        #expect(image.format == .json)
        return try #require(try JSONSerialization.jsonObject(with: Data(image.body)) as? NSDictionary)
    }

    static func facts(
        _ source: [UInt8], _ variant: Variant = variant(), limits: ImageLimits = ImageLimits()
    ) async throws -> NSDictionary {
        try facts(try await render(source, variant, limits: limits))
    }

    /// Runs a Python program with the packages of the tests, and returns the JSON that it prints.
    static func python(_ program: String, _ arguments: [String]) async throws -> NSDictionary {
        let run = try await ChildProcess.run(
            try await PythonTools.interpreter(), ["-c", program] + arguments, timeLimit: .patience,
            outputLimit: 16 << 20)
        try #require(run.end == .exit(.code(0)), "\(run.errors)")
        return try #require(try JSONSerialization.jsonObject(with: Data(run.output)) as? NSDictionary)
    }

    @Test func areThoseThatPillowReads() async throws {
        let folder = TemporaryFolder("info")
        let expected = try await Self.python(Self.pillow, [folder.path])
        #expect(expected.count == 17)
        for case (let name as String, let fact as NSDictionary) in expected {
            let source = Array(try Data(contentsOf: URL(filePath: "\(folder.path)/\(name)")))
            let found = try await Self.facts(source, Self.variant(location: true))
            for case (let member as String, let value as NSObject) in fact {
                let isEqual = Self.areEqual(found[member], value)
                #expect(isEqual, "\(name) \(member): \(String(describing: found[member])), expected \(value)")
            }
            for case let member as String in found.allKeys where name != "pages.pdf" {
                #expect(fact[member] != nil, "\(name) \(member)")
            }
            // The location is left out unless it is requested.
            let discreet = try await render(source, Self.variant())
            #expect(try Self.facts(discreet)["location"] == nil)
            #expect(!String(decoding: discreet.body, as: UTF8.self).contains("4711"))
        }
        await folder.remove()
    }

    /// Facts about a video are in a text of the PNG file of its frame. The file may be anything.
    @Test func videosAreDescribedByTheirFrames() async throws {
        let program = #"""
            import json, pathlib, sys
            from PIL import Image, PngImagePlugin
            folder = pathlib.Path(sys.argv[1])
            for name, text in json.loads(sys.argv[2]).items():
                chunks = PngImagePlugin.PngInfo()
                chunks.add_text("halcyon-video", text)
                Image.new("RGB", (9, 9)).save(folder / name, pnginfo=chunks)
            print("{}")
            """#
        let folder = TemporaryFolder("info")
        let texts = #"{"a.png": "h264 3000", "b.png": "av1", "c.png": "\"}, <script> 1", "d.png": "h264 -5"}"#
        _ = try await Self.python(program, [folder.path, texts])
        for (name, video) in [
            ("a.png", ["codec": "h264", "duration": 3000]), ("b.png", ["codec": "av1"]), ("c.png", nil), ("d.png", nil),
        ] as [(String, NSDictionary?)] {
            let source = Array(try Data(contentsOf: URL(filePath: "\(folder.path)/\(name)")))
            #expect(try await Self.facts(source)["video"] as? NSDictionary == video, "\(name)")
        }
        await folder.remove()
    }

    /// Compares JSON values. Numbers may differ by rounding errors.
    private static func areEqual(_ found: Any?, _ expected: NSObject) -> Bool {
        switch (found, expected) {
        case (let found as NSNumber, let expected as NSNumber):
            abs(found.doubleValue - expected.doubleValue) <= 1e-9 * max(1, abs(expected.doubleValue))
        case (let found as NSDictionary, let expected as NSDictionary):
            found.count == expected.count
                && expected.allSatisfy { areEqual(found[$0.key], $0.value as? NSObject ?? NSNull()) }
        default: (found as? NSObject) == expected
        }
    }

    @Test func namesAProfileInTheFormOfVersion4And2() async throws {
        let p3 = try await Self.facts(try await OutputTests.plain([200, 100, 50], in: "p3", as: .jpeg))
        let profile = try #require(p3["profile"] as? [String: String])
        #expect(profile["name"]?.contains("P3") == true && profile["colorSpace"] == "RGB")
        func v2(_ description: [UInt8]) -> [UInt8] {
            let size = description.count + 1
            let tag = Array("desc\0\0\0\0".utf8) + [0, 0, UInt8(size >> 8), UInt8(size & 255)] + description + [0]
            return [UInt8](repeating: 0, count: 16) + Array("RGB XYZ ".utf8) + [UInt8](repeating: 0, count: 104)
                + [0, 0, 0, 1] + Array("desc".utf8) + [0, 0, 0, 144, 0, 0, 0, UInt8(tag.count & 255)] + tag
        }
        #expect(ICCProfile(v2(Array("A profile".utf8))).name == "A profile")
        #expect(ICCProfile(v2([0xff, 0x41, 7, 0x42])).name == "\u{fffd}AB")
        #expect(ICCProfile(v2(Array(repeating: 0x41, count: 600))).name?.count == ICCProfile.longestName)
        for length in 0..<v2([0x41]).count { _ = ICCProfile(Array(v2([0x41]).prefix(length))).name }
    }

    @Test func needNoPixels() async throws {
        // The header of a PNG of 3.6 gigapixels, without any pixels.
        var header: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
        for (type, content) in [
            ("IHDR", [0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60, 8, 6, 0, 0, 0]), ("IDAT", [0x78, 0x9c]), ("IEND", []),
        ] as [(String, [UInt8])] {
            let body = Array(type.utf8) + content
            header += [0, 0, 0, UInt8(content.count)] + body + Self.crc(body)
        }
        let facts = try await Self.facts(header)
        #expect(
            facts["width"] as? Int == 60_000 && facts["height"] as? Int == 60_000 && facts["alpha"] as? Bool == true)
        for variant in [filling(10, 10), Self.variant([.palette])] {
            await #expect { try await render(header, variant) } throws: { ($0 as? JobError)?.code == .tooManyPixels }
        }
        // Neither do limits of frames and outputs apply.
        let limits = ImageLimits(sourcePixels: 1, frames: 1, decodedBytes: 1, renderedBytes: 1, outputPixels: 1)
        let photograph = try SampleImages.bytes()
        #expect(try await Self.facts(photograph, limits: limits)["format"] as? String == "jpeg")

        // Pixels that cannot be decoded are not noticed.
        let scan = try #require((0..<photograph.count - 1).first { photograph[$0...].starts(with: [0xff, 0xda]) })
        let broken = Array(photograph[..<(scan + 20)]) + [UInt8](repeating: 0xff, count: 2000)
        #expect(try await Self.facts(broken)["width"] as? Int == (try await Self.facts(photograph)["width"] as? Int))
        await #expect(throws: JobError.self) { try await render(broken, Self.variant([.phash])) }
    }

    private static func crc(_ bytes: [UInt8]) -> [UInt8] {
        var value = UInt32.max
        for byte in bytes {
            value ^= UInt32(byte)
            for _ in 0..<8 { value = value & 1 == 1 ? value >> 1 ^ 0xedb8_8320 : value >> 1 }
        }
        return (0..<4).map { UInt8(truncatingIfNeeded: ~value >> (24 - 8 * $0)) }
    }

    @Test(arguments: [Format.jpeg, .png, .gif])
    func truncatedFilesAreEnough(_ format: Format) async throws {
        let photograph = try SampleImages.bytes()
        let file = try await onRenderThread { try EncodedImage(photograph).open().encoded(as: format) }
        let whole = try await Self.facts(file)
        #expect(whole["truncated"] == nil && whole["bytes"] as? Int == file.count)
        let cut = Array(file.prefix(file.count / 2))
        let facts = try await Self.facts(cut)
        for member in ["format", "width", "height", "colorSpace", "bitsPerSample"] {
            #expect(facts[member] as? NSObject == whole[member] as? NSObject, "\(member)")
        }
        #expect(facts["truncated"] as? Bool == true)
        #expect(facts["bytes"] as? Int == cut.count)
        // Analyses need the pixels, and follow the tolerance.
        var variant = Self.variant([.dominantColor])
        await #expect(throws: JobError.self) { try await render(cut, variant) }
        variant.tolerance = .truncated
        #expect(try await Self.facts(cut, variant)["dominantColor"] != nil)
    }

    @Test func standBesideImagesInTheirOrder() async throws {
        let photograph = try SampleImages.bytes()
        let variants = [
            filling(60, 40), Self.variant(), Self.variant([.phash, .blurhash]), filling(30, 20, as: .webp),
        ]
        let result = try await render(photograph, variants)
        #expect(result.images.map(\.format) == [.png, .json, .json, .webp])
        #expect(result.images[1].size == result.sourceSize && result.images[1].frames == nil)
        #expect(try Self.facts(result.images[1])["phash"] == nil)
        let findings = try Self.facts(result.images[2])
        #expect((findings["phash"] as? String)?.wholeMatch(of: /[0-9a-f]{16}/) != nil && findings["blurhash"] != nil)
        // The same facts alone: they are a function of the source and the variant.
        #expect(try await render(photograph, variants[2]).body == result.images[2].body)
        #expect(try await render(photograph, variants[1]).body == result.images[1].body)
    }

    @Test func vectorsAndAlphaAreAnalyzed() async throws {
        let svg = Array(
            #"<svg xmlns="http://www.w3.org/2000/svg" width="400" height="100"><rect width="200" height="100" fill="red"/></svg>"#
                .utf8)
        let facts = try await Self.facts(svg, Self.variant(Set(AnalysisKind.allCases).subtracting([.faces])))
        #expect(facts["format"] as? String == "svg" && facts["width"] as? Int == 400 && facts["alpha"] as? Bool == true)
        #expect(Set(facts["palette"] as? [String] ?? []).isSuperset(of: ["#ff0000", "#ffffff"]))
        let hash = try #require((facts["thumbhash"] as? String).flatMap { Data(base64Encoded: $0) })
        #expect(hash[2] & 0x80 != 0, "alpha")
        #expect(hash[4] & 0x80 != 0, "landscape")
        // A dot, and sides that would shrink to nothing.
        for (width, height) in [(1, 1), (3000, 1), (1, 3000)] {
            let line = try await onRenderThread {
                try Image(color: [9, 8, 7], width: width, height: height).encoded(as: .png)
            }
            let facts = try await Self.facts(line, Self.variant(Set(AnalysisKind.allCases).subtracting([.faces])))
            #expect(facts["palette"] as? [String] == ["#090807"] && facts["dominantColor"] as? String == "#090807")
            #expect(facts["phash"] as? String == "8000000000000000", "no noise")
            #expect(facts["width"] as? Int == width)
        }
    }
}

/// EXIF that no camera writes.
@Suite struct EXIFFieldTests {
    /// A directory entry: its tag, type, count, and its value or offset.
    typealias Entry = (tag: Int, type: Int, count: Int, value: Int)

    static func file(_ entries: [Entry], _ data: [UInt8] = [], count: Int? = nil, start: Int = 8) -> [UInt8] {
        func little(_ number: Int, _ bytes: Int) -> [UInt8] {
            (0..<bytes).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
        }
        return Array("II".utf8) + little(42, 2) + little(start, 4) + little(count ?? entries.count, 2)
            + entries.flatMap { little($0.tag, 2) + little($0.type, 2) + little($0.count, 4) + little($0.value, 4) }
            + data
    }

    private static func text(_ bytes: [UInt8], count: Int? = nil) -> String? {
        EXIFFields(file([(0x010f, 2, count ?? bytes.count, 22)], bytes))?.text(0x010f, in: .image)
    }

    @Test func textsAreRepairedAndCut() {
        #expect(Self.text(Array("Halcyon\0".utf8)) == "Halcyon")
        #expect(Self.text(Array("  a\u{7}\n b \0c".utf8)) == "a b")
        #expect(Self.text([0x41, 0xff, 0xfe, 0x42, 0]) == "A\u{fffd}\u{fffd}B")
        #expect(Self.text([0, 0, 0, 0, 0]) == nil)
        #expect(Self.text(Array("    \u{1}".utf8)) == nil)
        let long = Self.text(Array(repeating: 0x41, count: 5000))
        #expect(long?.utf8.count == EXIFFields.longestText)
        // The limit is inside the last é.
        let accents = Self.text(Array(("A" + String(repeating: "é", count: 300)).utf8))
        #expect(accents == "A" + String(repeating: "é", count: 127))
        #expect(Self.text(Array("short\0".utf8), count: 0xffff_ffff) == nil, "beyond the end")
        #expect(Self.text(Array("short\0".utf8), count: 200) == nil, "beyond the end")
    }

    @Test func numbersAreCheckedAgainstTheFile() {
        func numbers(_ type: Int, _ count: Int, _ value: Int, _ data: [UInt8] = []) -> [Double]? {
            EXIFFields(Self.file([(0x829a, type, count, value)], data))?.numbers(0x829a, in: .image)
        }
        #expect(numbers(3, 1, 400) == [400] && numbers(3, 2, 0x0002_0001) == [1, 2])
        #expect(numbers(9, 1, -5) == [-5] && numbers(8, 1, 0xffff) == [-1] && numbers(4, 1, -1) == [4_294_967_295])
        #expect(numbers(5, 1, 22, [1, 0, 0, 0, 125, 0, 0, 0]) == [0.008])
        #expect(numbers(10, 1, 22, [0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0]) == [-1.0 / 3])
        #expect(numbers(5, 1, 22, [1, 0, 0, 0, 0, 0, 0, 0]) == [], "a denominator of 0")
        #expect(numbers(5, 1, 0xffff_fff0) == [] && numbers(5, 0xffff_ffff, 22) == [] && numbers(5, 17, 0) == [])
        #expect(numbers(2, 1, 0) == [] && numbers(12, 1, 0) == [] && numbers(0, 1, 0) == [])
    }

    @Test func directoriesAreBounded() {
        #expect(
            EXIFFields([]) == nil && EXIFFields(Array("Exif\0\0".utf8)) == nil && EXIFFields(Array("II*\0".utf8)) == nil
        )
        // More entries than bytes, and a directory beyond the end.
        #expect(EXIFFields(Self.file([(0x010f, 2, 3, 0x4241)], count: 65_535))?.text(0x010f, in: .image) == "AB")
        #expect(EXIFFields(Self.file([], start: 0xffff_ffff))?.text(0x010f, in: .image) == nil)
        // A directory that contains itself.
        let loop = EXIFFields(Self.file([(0x8769, 4, 1, 8), (0x8825, 4, 1, 8), (0x9003, 2, 2, 0x41)]))
        #expect(loop?.text(0x9003, in: .photo) == "A" && loop?.text(0x9003, in: .location) == "A")
        // The 513th entry is not read.
        let many = Array(repeating: (0x0001, 3, 1, 1) as Entry, count: 512) + [(0x010f, 2, 3, 0x4241)]
        #expect(EXIFFields(Self.file(many))?.text(0x010f, in: .image) == nil)
    }

    @Test func hostilePlacesAndTimesAreLeftOut() async throws {
        let jpeg = try await OutputTests.plain([200, 100, 50], as: .jpeg)
        func rationals(_ numbers: [(Int, Int)]) -> [UInt8] {
            numbers.flatMap { [$0.0, $0.1] }.flatMap { number in
                (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
            }
        }
        func location(_ latitude: [(Int, Int)], _ reference: Int = 0x4e) async throws -> NSDictionary? {
            let start = 8 + 2 + 5 * 12
            let data = rationals(latitude)
            let exif = EXIFFieldTests.file(
                [
                    (0x8825, 4, 1, 8), (1, 2, 2, reference), (2, 5, latitude.count, start), (3, 2, 2, 0x45),
                    (4, 5, 1, start),
                ], data)
            let file = [0xff, 0xd8] + segment(0xe1, Array("Exif\0\0".utf8) + exif) + jpeg.dropFirst(2)
            return try await InfoTests.facts(Array(file), InfoTests.variant(location: true))["location"]
                as? NSDictionary
        }
        #expect(try await location([(52, 1), (30, 1), (0, 1)])?["latitude"] as? Double == 52.5)
        #expect(try await location([(52, 1), (30, 1), (0, 1)], 0x73)?["latitude"] as? Double == -52.5)
        #expect(try await location([(91, 1), (0, 1), (0, 1)]) == nil)
        #expect(try await location([(1, 0), (0, 1), (0, 1)]) == nil)
        #expect(try await location([(52, 1), (30, 1), (0, 1), (0, 1)]) == nil)
    }

    @Test func mutatedBytesNeitherTrapNorYieldInvalidJSON() async throws {
        let jpeg = try await OutputTests.plain([200, 100, 50], as: .jpeg)
        var entries: [Entry] = [(0x8769, 4, 1, 8), (0x8825, 4, 1, 8)]
        for tag in [0x010f, 0x0110, 0x9003, 0x9011, 1, 3] { entries.append((tag, 2, 4, 0x0041_4243)) }
        for tag in [0x829a, 0x829d, 0x8827, 0x9209, 2, 4, 6] { entries.append((tag, 5, 1, 8)) }
        let plain = Self.file(entries, Array(repeating: 1, count: 64))
        var generator = SeededNumbers(seed: 7)
        for _ in 0..<300 {
            var exif = plain
            for _ in 0..<Int.random(in: 1...12, using: &generator) {
                exif[Int.random(in: 8..<exif.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            let file = [0xff, 0xd8] + segment(0xe1, Array("Exif\0\0".utf8) + exif) + jpeg.dropFirst(2)
            let facts = try await InfoTests.facts(Array(file), InfoTests.variant(location: true))
            #expect(facts["format"] as? String == "jpeg")
        }
    }
}
