import Concurrency
import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonSources

/// Avatars that the loader draws, decoded by libvips.
@Suite(.limitedParallelism) struct AvatarTests {
    /// A decoded avatar.
    private struct Picture: Sendable {
        /// Red, green, blue and alpha of every pixel.
        let pixels: [UInt8]
        /// Columns and rows that contain anything but the background; empty for a blank image.
        let columns: Range<Int>
        let rows: Range<Int>

        /// Decodes a file. Must be called on a libvips thread.
        init(_ file: [UInt8], on background: CSSColor) throws {
            let image = try EncodedImage(file).open()
            #expect(image.width == Avatar.side && image.height == Avatar.side && image.bands == 4)
            let channels = [background.red, background.green, background.blue].map(Double.init)
            let trim = try Operation.call(
                "find_trim", ["in": .image(image), "background": .doubles(channels), "threshold": 1])
            let (left, top) = (try trim.int("left"), try trim.int("top"))
            columns = left..<left + (try trim.int("width"))
            rows = top..<top + (try trim.int("height"))
            pixels = try image.pixels()
        }

        func color(_ x: Int, _ y: Int) -> [UInt8] {
            let place = (y * Avatar.side + x) * 4
            return Array(pixels[place..<place + 4])
        }
    }

    private func withPool<Value: Sendable>(_ body: (ThreadPool) async throws -> Value) async throws -> Value {
        let pool = ThreadPool(name: "draw", threads: 2, onThreadEnd: VipsLibrary.endThread)
        let result: Result<Value, any Error>
        do { result = .success(try await body(pool)) } catch { result = .failure(error) }
        await blocking { pool.shutdown() }
        return try result.get()
    }

    private func draw(_ initials: Initials) async throws -> Picture {
        try await withPool { pool in
            let loader = SourceLoader(drawingOn: pool)
            let source = try await loader.load(.initials(initials))
            await loader.close()
            return try await pool.run { try Picture(source.body, on: initials.background) }
        }
    }

    @Test(arguments: ["J", "JD", "WMW", "g", "Åj"]) func lettersAreCenteredInASquare(text: String) async throws {
        let initials = try Initials(
            text, background: CSSColor("#204060"), foreground: CSSColor(red: 255, green: 240, blue: 0))
        let picture = try await draw(initials)
        #expect(
            picture.color(0, 0) == [0x20, 0x40, 0x60, 255] && picture.color(1023, 1023) == [0x20, 0x40, 0x60, 255])
        let (columns, rows) = (picture.columns, picture.rows)
        #expect(abs(columns.lowerBound - (Avatar.side - columns.upperBound)) <= 4, "\(columns)")
        #expect(abs(rows.lowerBound - (Avatar.side - rows.upperBound)) <= 150, "\(rows)")
        #expect(columns.count <= 770 && rows.count <= 770)
        #expect(max(columns.count, rows.count) >= 300)
        let inked = rows.contains { y in
            columns.contains { x in
                let place = (y * Avatar.side + x) * 4
                return picture.pixels[place] == 255 && picture.pixels[place + 1] == 240
                    && picture.pixels[place + 2] == 0
            }
        }
        #expect(inked)
    }

    @Test func supportsTransparentColors() async throws {
        let initials = try Initials(
            "I", background: .transparent, foreground: CSSColor(red: 255, green: 0, blue: 0, alpha: 128))
        let picture = try await draw(initials)
        #expect(picture.color(0, 0)[3] == 0)
        let middle = picture.color(512, 512)
        #expect(middle[0] > 250 && middle[1] < 5 && (126...130).contains(middle[3]), "\(middle)")
    }

    @Test(arguments: ["&", "<a>", "&lt", "\"'", "مر", "אב", "ก็", "e\u{301}\u{323}", "👩‍👩‍👧", "李", "🇩🇪", "\u{fffd}"])
    func drawsAnyCharacters(text: String) async throws {
        let picture = try await draw(try Initials(text))
        #expect(!picture.columns.isEmpty && !picture.rows.isEmpty)
    }

    @Test func doesNotInterpretMarkup() async throws {
        // As markup, `<b>` would make the rest bold instead of being drawn as three characters.
        let written = try await draw(try Initials("<b>"))
        let meant = try await draw(try Initials("b"))
        #expect(written.columns.count > meant.columns.count + 100)
    }

    @Test func isDeterministicAndFreshForAYear() async throws {
        try await withPool { pool in
            let loader = SourceLoader(drawingOn: pool)
            let source = Source.initials(try Initials("JD"))
            let first = try await loader.load(source)
            #expect(
                ResultTTL(maxAge: 0, headers: first.headers, completedAt: first.completedAt)
                    == .seconds(31_536_000))
            #expect(first.status == nil)
            #expect(try await loader.load(source).body == first.body)
            await loader.close()
        }
    }

    @Test func throwsCancellationErrorAfterPoolShutdown() async throws {
        let pool = ThreadPool(name: "draw", threads: 1)
        await blocking { pool.shutdown() }
        let loader = SourceLoader(drawingOn: pool)
        await #expect(throws: CancellationError.self) { try await loader.load(.initials(try Initials("JD"))) }
        await loader.close()
    }

    @Test func findsInstalledFonts() async throws {
        let found = try await withPool { pool in try await pool.run { Fonts.areThere } }
        #expect(found)
    }
}
