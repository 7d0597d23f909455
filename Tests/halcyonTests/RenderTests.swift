import TestSupport
import Testing

/// `halcyon render`, which needs no cluster.
@Suite struct RenderTests {
    @Test func sizesAFileOfThisMachine() async throws {
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

    @Test func writesToAPipeAndReadsFromOne() async throws {
        let png = try await Executable.run(["render", Samples.chelsea, "--width", "50", "--format", "png"]).expect(0)
        #expect(png.bytes.starts(with: [0x89, 0x50, 0x4e, 0x47]))
        let rubbish = try await Executable.run(["render", "-", "-o", "/dev/null"], input: "no image at all").expect(1)
        #expect(rubbish.errors.contains("unsupported_format"))
    }

    @Test func refusesLoopbackUnlessItIsAllowed() async throws {
        let origin = try await Nginx.start(serving: Samples.path)
        let line = ["render", "\(origin.url)/coffee.jpg", "--width", "60", "--json"]
        let refused = try await Executable.run(line).expect(1)
        #expect(refused.errors.contains("blocked_address") && refused.errors.contains("sources.allow"))
        #expect(origin.requests().isEmpty)
        let allowed = try await Executable.run(line + ["--set", "sources.allow=127.0.0.1"]).expect(0)
        #expect(try allowed.json().first?.at("width") == "60")
        await origin.stop()
    }

    @Test func looksAtNoProxyOfTheEnvironment() async throws {
        let origin = try await Nginx.start(serving: Samples.path)
        let nobody = "http://127.0.0.1:1"
        try await Executable.run(
            ["render", "\(origin.url)/coffee.jpg", "--set", "sources.allow=127.0.0.1", "-o", "/dev/null"],
            environment: ["http_proxy": nobody, "ALL_PROXY": nobody]
        ).expect(0)
        await origin.stop()
    }

    @Test func limitsHold() async throws {
        let bytes = try await Executable.run([
            "render", Samples.chelsea, "-o", "/dev/null", "--set", "sources.maximumBytes=1000",
        ])
        #expect(bytes.expect(1).errors.contains("larger than 1000 bytes"))
        let pixels = try await Executable.run([
            "render", Samples.chelsea, "-o", "/dev/null", "--set", "images.maximumPixels=1000",
        ])
        #expect(pixels.expect(1).errors.contains("too_many_pixels"))
    }
}
