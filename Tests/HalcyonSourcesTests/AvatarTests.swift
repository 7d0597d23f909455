import HalcyonModel
import TestSupport
import Testing
import Threads
import Vips

@testable import HalcyonSources

/// Avatars, as the loader gives them and libvips reads them.
@Suite(.takesTurns) struct AvatarTests {
    /// Red, green, blue and alpha of every pixel.
    private struct Picture: Sendable {
        let pixels: [UInt8]

        func color(_ x: Int, _ y: Int) -> [UInt8] {
            Array(pixels[(y * Avatar.side + x) * 4..<(y * Avatar.side + x) * 4 + 4])
        }

        /// Columns and rows from the first to the last in which there is anything else than the upper left corner's colour.
        var ink: (columns: ClosedRange<Int>, rows: ClosedRange<Int>)? {
            let background = color(0, 0)
            var (columns, rows): (Set<Int>, Set<Int>) = ([], [])
            for y in 0..<Avatar.side {
                for x in 0..<Avatar.side where color(x, y) != background {
                    columns.insert(x)
                    rows.insert(y)
                }
            }
            guard let left = columns.min(), let right = columns.max(), let top = rows.min(), let bottom = rows.max()
            else { return nil }
            return (left...right, top...bottom)
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
            return try await pool.run {
                let image = try EncodedImage(source.body).open()
                #expect(image.width == Avatar.side && image.height == Avatar.side && image.bands == 4)
                return Picture(pixels: try image.pixels())
            }
        }
    }

    @Test(arguments: ["J", "JD", "WMW", "g", "Åj"]) func lettersStandInTheMiddleOfASquare(text: String) async throws {
        let initials = try Initials(
            text, background: CSSColor("#204060"), foreground: CSSColor(red: 255, green: 240, blue: 0))
        let picture = try await draw(initials)
        #expect(
            picture.color(0, 0) == [0x20, 0x40, 0x60, 255] && picture.color(1023, 1023) == [0x20, 0x40, 0x60, 255])
        let ink = try #require(picture.ink)
        #expect(abs(ink.columns.lowerBound - (1023 - ink.columns.upperBound)) <= 2, "\(ink.columns)")
        #expect(abs(ink.rows.lowerBound - (1023 - ink.rows.upperBound)) <= 150, "\(ink.rows)")
        #expect(ink.columns.count <= 770 && ink.rows.count <= 770)
        #expect(max(ink.columns.count, ink.rows.count) >= 300)
        #expect(
            stride(from: 0, to: picture.pixels.count, by: 4).contains { picture.pixels[$0..<$0 + 3] == [255, 240, 0] })
    }

    @Test func coloursMayBeTransparent() async throws {
        let initials = try Initials(
            "I", background: .transparent, foreground: CSSColor(red: 255, green: 0, blue: 0, alpha: 128))
        let picture = try await draw(initials)
        #expect(picture.color(0, 0)[3] == 0)
        let middle = picture.color(512, 512)
        #expect(middle[0] > 250 && middle[1] < 5 && (126...130).contains(middle[3]), "\(middle)")
    }

    @Test(arguments: ["&", "<a>", "&lt", "\"'", "مر", "אב", "ก็", "e\u{301}\u{323}", "👩‍👩‍👧", "李", "🇩🇪", "\u{fffd}"])
    func anyLettersAreDrawnAsTheyAre(text: String) async throws {
        let initials = try Initials(text)
        #expect(try await draw(initials).ink != nil)
    }

    @Test func markupIsNoMarkup() async throws {
        // As markup this would be one letter, and bold for the rest.
        let written = try #require(try await draw(try Initials("<b>")).ink)
        let meant = try #require(try await draw(try Initials("b")).ink)
        #expect(written.columns.count > meant.columns.count + 100)
    }

    @Test func theyAreFreshForAYearAndTheSameEachTime() async throws {
        try await withPool { pool in
            let loader = SourceLoader(drawingOn: pool)
            let source = Source.initials(try Initials("JD"))
            let first = try await loader.load(source)
            #expect(
                ResultLifetime(maxAge: 0, headers: first.headers, completedAt: first.completedAt)
                    == .seconds(31_536_000))
            #expect(first.status == nil)
            #expect(try await loader.load(source).body == first.body)
            await loader.close()
        }
    }

    @Test func aPoolThatIsClosedIsNoFailureOfTheSource() async throws {
        let pool = ThreadPool(name: "draw", threads: 1)
        await blocking { pool.shutdown() }
        let loader = SourceLoader(drawingOn: pool)
        await #expect(throws: CancellationError.self) { try await loader.load(.initials(try Initials("JD"))) }
        await loader.close()
    }

    @Test func thisMachineHasFonts() async throws {
        let found = try await withPool { pool in try await pool.run { Fonts.areThere } }
        #expect(found)
    }
}
