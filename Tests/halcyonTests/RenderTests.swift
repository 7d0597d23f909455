import Foundation
import TestSupport
import Testing

/// `halcyon render`, which needs no cluster.
@Suite struct RenderTests {
    @Test func rendersALocalFile() async throws {
        let folder = TemporaryFolder("render")
        let file = "\(folder.path)/small.webp"
        let run = try await Executable.run(
            ["render", Samples.chelsea, "--width", "200", "--height", "100", "-o", file, "--json"]
        ).expect(0)
        let facts = try #require(try run.json().first)
        #expect(facts.at("width") == "200" && facts.at("height") == "100" && facts.at("format") == "webp")
        #expect(facts.at("source", "width") == "451" && facts.at("source", "format") == "jpeg")
        #expect(facts.at("bytes") == "\(folder.read("small.webp").count)")
        #expect(Executable.text(Array(folder.read("small.webp")[8..<12])) == "WEBP")
        let words = try await Executable.run(["render", Samples.chelsea, "--width", "200", "-o", file]).expect(0)
        #expect(words.output.contains("451x300 jpeg, 31.6 kB -> 200x133 webp"))
        await folder.remove()
    }

    @Test func printsFactsAboutALocalFile() async throws {
        let run = try await Executable.run(["info", Samples.chelsea, "--json", "--phash", "--location"]).expect(0)
        let facts = try #require(try run.json().first)
        #expect(facts.at("width") == "451" && facts.at("height") == "300" && facts.at("format") == "jpeg")
        #expect(facts.at("phash")?.utf8.count == 16)
        let table = try await Executable.run(["info", Samples.chelsea, "--palette"]).expect(0).output
        #expect(
            table.contains("format                      jpeg\n") && table.contains("width                       451\n"))
        #expect(table.split(separator: "\n").last?.wholeMatch(of: /palette +(#[0-9a-f]{6} ?)+/) != nil)
        // Only the header is read.
        let cut = try Data(contentsOf: URL(filePath: Samples.chelsea)).prefix(4000)
        let folder = TemporaryFolder("info")
        folder.write(cut, to: "cut.jpg")
        let header = try await Executable.run(["info", "\(folder.path)/cut.jpg", "--json"]).expect(0)
        #expect(try header.json().first?.at("truncated") == "true")
        try await Executable.run(["info", "\(folder.path)/cut.jpg", "--palette"]).expect(1)
        try await Executable.run(["info", "\(folder.path)/cut.jpg", "--palette", "--tolerance", "truncated"]).expect(0)
        let refused = try await Executable.run(["info", "-"], input: "no image").expect(1)
        #expect(refused.errors.contains("unsupported_format"))
        // The same facts beside images of a job.
        let job = #"{"variants": [{"width": 50}, {"info": true}]}"#
        let both = try await Executable.run(
            ["render", Samples.chelsea, "--job", "-", "--json", "-o", folder.path], input: job
        ).expect(0)
        #expect(try both.json()[1].at("info", "width") == "451")
        await folder.remove()
    }

    @Test(arguments: ["x.bmp", "a.png/x.heic", "x.", "x.jpg.gz"])
    func rejectsUnknownFileExtensions(file: String) async throws {
        // The extension is checked before the source is read, which does not exist.
        let run = try await Executable.run(["render", "missing.jpg", "-o", file]).expect(2)
        #expect(run.errors.contains("\(file): unknown file extension; expected .jpg, .png, .webp"))
    }

    @Test(arguments: [["-o", "plain"], ["-o", ".hidden"], ["-o", "x.bmp", "--format", "png"]])
    func acceptsFileNamesWithoutAKnownFormat(options: [String]) async throws {
        try await Executable.run(["render", "initials:J", "--width", "8"] + options).expect(0)
    }

    /// A container with a read-only root may have no folder for temporary files. To crop an image, libvips needs all of
    /// it, and by default it keeps up to 100 MB in memory.
    @Test func needsNoTemporaryFolder() async throws {
        let folder = TemporaryFolder("render")
        let large = "\(folder.path)/large.webp"
        let dot = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs="
        let enlarging = ["--width", "6100", "--height", "6100", "--content-mode", "scaleToFill", "-o", large]
        // The timeout is long, because rendering is slow on a busy machine.
        let longTimeout = ["HALCYON_IMAGES_RENDER_TIMEOUT": "10m"]
        try await Executable.run(["render", dot] + enlarging, environment: longTimeout).expect(0)
        let cutting = ["render", large, "--crop-rect", "0.5,0.5,0.1,0.1", "-o", "/dev/null"]
        let nowhere = longTimeout.merging(["TMPDIR": "/nonexistent"]) { $1 }
        try await Executable.run(cutting, environment: nowhere).expect(0)
        // An operator's own threshold wins.
        let threshold = ["VIPS_DISC_THRESHOLD": "1m"]
        let refused = try await Executable.run(cutting, environment: nowhere.merging(threshold) { $1 }).expect(1)
        #expect(refused.errors.contains("/nonexistent"))
        await folder.remove()
    }

    @Test func writesToAPipeAndReadsFromOne() async throws {
        let png = try await Executable.run(["render", Samples.chelsea, "--width", "50", "--format", "png"]).expect(0)
        #expect(png.bytes.starts(with: [0x89, 0x50, 0x4e, 0x47]))
        let invalid = try await Executable.run(["render", "-", "-o", "/dev/null"], input: "no image at all").expect(1)
        #expect(invalid.errors.contains("unsupported_format"))
    }

    /// The limits on sources of workers do not apply to the source argument, but to the watermark of a job.
    @Test func readsLocalFilesByPathAndByURL() async throws {
        let folder = TemporaryFolder("render")
        let copy = folder.write(try Data(contentsOf: URL(filePath: Samples.chelsea)), to: "my:cat %.jpg")
        let sizing = ["--width", "40", "-o", "/dev/null", "--json"]
        let url = "file://\(folder.path)/my:cat%20%25.jpg"
        var keys: Set<String> = []
        for source in [copy, url] {
            let facts = try #require(try await Executable.run(["render", source] + sizing).expect(0).json().first)
            #expect(facts.at("width") == "40")
            keys.insert(facts.at("key") ?? "")
        }
        #expect(keys == Set(try await Executable.run(["key", url, "--width", "40"]).expect(0).lines))
        let mark = #"{"watermark":{"source":"\#(url)"}}"#
        let marked = ["render", copy, "--processor", mark] + sizing
        let refused = try await Executable.run(marked).expect(1)
        #expect(refused.errors.contains("forbidden") && refused.errors.contains("sources.fileRoots"))
        try await Executable.run(marked + ["--set", "sources.fileRoots=\(folder.path)"]).expect(0)
        try await Executable.run(["render", "file:///no/such"] + sizing).expect(1)
        await folder.remove()
    }

    @Test func acceptsDataURLsAndBase64Sources() async throws {
        let dot = "R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs="
        let sizing = ["--no-sizing", "--format", "png", "-o", "/dev/null", "--json"]
        for source in ["data:image/gif;base64,\(dot)", #"{"base64":"\#(dot)"}"#] {
            let facts = try await Executable.run(["render", source] + sizing).expect(0).json()
            #expect(facts.first?.at("width") == "1")
        }
        let malformed = try await Executable.run(["render", "{no json}"] + sizing).expect(2)
        #expect(malformed.errors.contains("is not valid JSON"))
    }

    @Test func rejectsLoopbackUnlessAllowed() async throws {
        let origin = try await Nginx.start(serving: Samples.path)
        let line = ["render", "\(origin.url)/coffee.jpg", "--width", "60", "--json"]
        let refused = try await Executable.run(line).expect(1)
        #expect(refused.errors.contains("blocked_address") && refused.errors.contains("sources.allow"))
        #expect(origin.requests().isEmpty)
        let allowed = try await Executable.run(line + ["--set", "sources.allow=127.0.0.1"]).expect(0)
        #expect(try allowed.json().first?.at("width") == "60")
        await origin.stop()
    }

    @Test func usesAlternativesAndTheFallbackPicture() async throws {
        let photograph = try SampleImages.bytes()
        let origin = RawOrigin { request in
            request.path == "/good" ? RawOrigin.Step.response(photograph) : RawOrigin.answer("404 Not Found")
        }
        let (none, missing, good) = (origin.url("/none"), origin.url("/missing"), origin.url("/good"))
        func render(_ fields: String) async throws -> Run {
            try await Executable.run(
                ["render", "--job", "-", "--json", "--set", "sources.allow=127.0.0.1"],
                input: #"{"source":"\#(none)","width":30,\#(fields)}"#)
        }
        let key = try await Executable.run(["key", good, "--width", "30"]).expect(0).lines.first
        let second = try await render(#""alternatives":["\#(missing)","\#(good)"]"#).expect(0)
        let alternative = try #require(try second.json().first)
        #expect(alternative.at("alternative") == good && alternative.at("key") == key)
        #expect(alternative.at("fallback") == nil && second.errors.contains("the alternative source \(good)"))
        let last = try await render(#""alternatives":["\#(missing)"],"fallback":"\#(good)""#).expect(0)
        let fallback = try #require(try last.json().first)
        #expect(fallback.at("fallback") == "not_found" && fallback.at("key") == key)
        #expect(last.errors.contains("no alternative source succeeded (not_found); rendered the fallback picture"))
        let failed = try await render(#""fallback":"\#(missing)""#).expect(1)
        #expect(failed.errors.contains("not_found") && failed.errors.contains("fallback picture not available"))
        try await origin.stop()
    }

    @Test func writesTheVariantsOfAPartialJobThatSucceed() async throws {
        let folder = TemporaryFolder("render")
        func render(_ widths: Int...) async throws -> Run {
            let variants = widths.map { #"{"width":\#($0),"height":40,"format":"png"}"# }.joined(separator: ",")
            return try await Executable.run(
                ["render", Samples.chelsea, "--job", "-", "--json", "-o", "\(folder.path)/"]
                    + ["--set", "images.maximumOutputPixels=10000"],
                input: #"{"partial":true,"variants":[\#(variants)]}"#)
        }
        let some = try await render(40, 4000, 41).expect(0)
        let images = try some.json()
        let widths: [String?] = images.map { $0.at("width") }
        #expect(widths == ["40", "41"] && some.errors.contains("variants[1]: the output"))
        let alone = try await render(41).expect(0).json()
        #expect(images.last?.at("key") == alone.first?.at("key"))
        #expect(try await render(4000, 4001).expect(1).errors.contains("variants[0]: the output"))
        await folder.remove()
    }

    @Test func ignoresProxyVariables() async throws {
        let origin = try await Nginx.start(serving: Samples.path)
        let proxy = "http://127.0.0.1:1"
        try await Executable.run(
            ["render", "\(origin.url)/coffee.jpg", "--set", "sources.allow=127.0.0.1", "-o", "/dev/null"],
            environment: ["http_proxy": proxy, "ALL_PROXY": proxy]
        ).expect(0)
        await origin.stop()
    }

    @Test func enforcesTheLimitsOfSources() async throws {
        let bytes = try await Executable.run([
            "render", Samples.chelsea, "-o", "/dev/null", "--set", "sources.maximumBytes=1000",
        ])
        #expect(bytes.expect(1).errors.contains("larger than 1000 bytes"))
        let pixels = try await Executable.run([
            "render", Samples.chelsea, "-o", "/dev/null", "--set", "images.maximumPixels=1000",
        ])
        #expect(pixels.expect(1).errors.contains("too_many_pixels"))
    }

    @Test func writesVariantsToAFolder() async throws {
        let folder = TemporaryFolder("variants")
        let job = folder.write(
            """
            {"height": 100, "variants": [{"width": 200, "height": 100}, {"width": 200, "height": 100, "quality": 20},
            {"width": 50, "format": "webp", "blurhash": true, "dominantColor": true}]}
            """.utf8, to: "job.json")
        let line = ["render", Samples.chelsea, "--job", job]
        let run = try await Executable.run(line + ["-o", "\(folder.path)/new/", "--json"]).expect(0)
        let facts = try run.json()
        let names = ["chelsea-200x100.jpg", "chelsea-200x100-2.jpg", "chelsea-50x33.webp"]
        #expect(facts.map { $0.at("file") } == names.map { "\(folder.path)/new/\($0)" })
        #expect(facts.map { $0.at("blurhash") != nil } == [false, false, true])
        #expect(facts[2].at("dominantColor")?.hasPrefix("#") == true && facts[2].at("source", "width") == "451")
        for (name, facts) in zip(names, facts) { #expect(facts.at("bytes") == "\(folder.read("new/\(name)").count)") }
        // An existing folder needs no trailing slash.
        let words = try await Executable.run(line + ["-o", "\(folder.path)/new"]).expect(0)
        #expect(words.lines.count == 4 && words.lines[2].contains("-> 50x33 webp") && words.lines[2].contains(names[2]))

        let file = try await Executable.run(line + ["-o", "\(folder.path)/one.jpg"]).expect(2)
        #expect(file.errors.contains("one.jpg; use -o DIR/ to write to a folder"))
        let pipe = try await Executable.run(line).expect(2)
        #expect(pipe.errors.contains("cannot write 3 images to standard output") && pipe.bytes.isEmpty)
        let limited = try await Executable.run(
            line + ["-o", "\(folder.path)/new", "--set", "images.maximumOutputPixels=1700"]
        ).expect(1)
        #expect(limited.errors.contains("too_many_pixels: variants[0]: the output would have 200×100"))
        await folder.remove()
    }

    @Test func rendersInitialsSVGAndAnimations() async throws {
        let folder = TemporaryFolder("drawn")
        let avatar = try await Executable.run(["render", "initials:JD", "--width", "64", "-o", folder.path, "--json"])
        let facts = try #require(try avatar.expect(0).json().first)
        #expect(facts.at("file") == "\(folder.path)/initials_JD-64x64.png" && facts.at("source", "width") == "1024")
        let key = try await Executable.run(["key", "initials:JD", "--width", "64"]).expect(0)
        #expect(facts.at("key") == key.lines[0])
        let svg = folder.write(
            #"<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><rect width="40" height="20" fill="red"/></svg>"#
                .utf8, to: "red.svg")
        let drawn = try await Executable.run(["render", svg, "--width", "80", "--upscale", "--json"]).expect(0)
        #expect(try drawn.json().first?.at("width") == "80" && drawn.json().first?.at("source", "format") == "svg")
        let gif = folder.write(Self.twoFrames, to: "two.gif")
        let moving = try #require(try await Executable.run(["render", gif, "--json"]).expect(0).json().first)
        #expect(moving.at("frames") == "2" && moving.at("format") == "gif")
        let still = try await Executable.run(["render", gif, "--frames", "1", "--json"]).expect(0)
        #expect(try still.json().first?.at("frames") == nil)
        let tooLong = try await Executable.run(["render", gif, "--json", "--set", "images.frames=1"]).expect(1)
        #expect(tooLong.errors.contains("too_many_pixels: the source has 2 frames"))
        await folder.remove()
    }

    @Test func findsAndHidesFacesWithTheDetectorOfTheSettings() async throws {
        let script = Repository.path("Tests/Detectors/detector.py")
        let line = ["render", Samples.chelsea, "--width", "240", "-o", "/dev/null", "--json"]
        let detector = ["--set", "images.detector=python3 \(script) photo", "--set", "images.detectorTimeout=60s"]
        let found = try await Executable.run(line + ["--faces"] + detector).expect(0)
        #expect(found.output.contains(#""faces":[{"x":54,"y":24,"width":48,"height":40,"confidence":0.9},"#))
        let hidden = try await Executable.run(line + ["--processor", "blurFaces"] + detector).expect(0).json()
        let plain = try await Executable.run(line).expect(0).json()
        #expect(hidden.first?.at("sha256") != plain.first?.at("sha256"))
        let open = try await Executable.run(line + ["--processor", "blurFaces"]).expect(1)
        #expect(open.errors.contains("internal: faces cannot be detected: no detector is configured; set images."))
        let other = try await Executable.run(line + ["--faces"] + detector + ["--set", "images.detectorName=x/2"])
        #expect(other.errors.contains("images.detectorName is \"x/2\""))
    }

    @Test(arguments: [
        ("images.detectorMemory=31MiB", "expected a byte size such as 512MiB from 32MiB to 1TiB"),
        ("images.detectorTimeout=0", "expected a duration such as 500ms, 30s, 5m or 1d from 1ms to 10m"),
        ("images.detectorSide=15", "expected a whole number from 16 to 4096"),
        ("images.detectorSide=4097", "expected a whole number from 16 to 4096"),
        ("images.detectorName=", "expected 1 to 64 letters, digits, dots"),
        ("images.detectorName=a b", "expected 1 to 64 letters, digits, dots"),
    ])
    func rejectsInvalidSettingsOfTheDetector(setting: String, message: String) async throws {
        let run = try await Executable.run(["info", Samples.chelsea, "--set", setting]).expect(2)
        #expect(run.errors.contains("\(setting.prefix { $0 != "=" }): \(message)"), "\(run.errors)")
    }

    @Test func loadsOnlyListedFormats() async throws {
        let line = ["render", Samples.chelsea, "--width", "20", "-o", "/dev/null", "--set"]
        try await Executable.run(line + ["images.formats=png,jpeg"]).expect(0)
        let closed = try await Executable.run(line + ["images.formats=png,webp"]).expect(1)
        #expect(closed.errors.contains("unsupported_format"))
    }

    @Test func appliesAddressRulesToWatermarks() async throws {
        let origin = try await Nginx.start(serving: Samples.path)
        let mark = #"{"watermark":{"source":"\#(origin.url)/coffee.jpg","widthFraction":0.5}}"#
        let line = ["render", Samples.chelsea, "--width", "100", "--processor", mark, "--json"]
        let refused = try await Executable.run(line).expect(1)
        #expect(refused.errors.contains("blocked_address: the asset \(origin.url)/coffee.jpg: "))
        let allowed = try await Executable.run(line + ["--set", "sources.allow=127.0.0.1"]).expect(0)
        let plain = try await Executable.run(["render", Samples.chelsea, "--width", "100", "--json"]).expect(0)
        #expect(try allowed.json().first?.at("sha256") != plain.json().first?.at("sha256"))
        await origin.stop()
    }

    /// A GIF89a of 2×2 pixels with a black and a white frame, written by hand.
    private static let twoFrames: [UInt8] =
        Array("GIF89a".utf8) + [2, 0, 2, 0, 0x80, 0, 0, 0, 0, 0, 255, 255, 255]
        + frame([0x84, 0x51]) + frame([0x8c, 0x53]) + [0x3b]

    private static func frame(_ pixels: [UInt8]) -> [UInt8] {
        [0x21, 0xf9, 4, 0, 10, 0, 0, 0, 0x2c, 0, 0, 0, 0, 2, 0, 2, 0, 0, 2, UInt8(pixels.count)] + pixels + [0]
    }
}
