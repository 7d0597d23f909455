import HalcyonKit
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// The decoder of BlurHashes, against another implementation and against the encoder of the workers.
@Suite struct BlurHashTests {
    typealias BlurHash = HalcyonKit.BlurHash
    typealias Encoder = HalcyonImaging.BlurHash

    /// The examples in the README of the authors of BlurHash, and their pixels at 4 by 3 as decoded by the Python
    /// package `blurhash` 1.1.5.
    private static let published: [(text: String, pixels: [[UInt8]])] = [
        (
            "LEHV6nWB2yk8pyo0adR*.7kCMdnj",
            [
                [135, 164, 177], [161, 173, 177], [181, 180, 171], [160, 172, 174], [124, 154, 169], [148, 148, 154],
                [164, 145, 134], [146, 152, 155], [124, 144, 154], [144, 134, 132], [163, 130, 104], [148, 140, 134],
            ]
        ),
        (
            "LGF5]+Yk^6#M@-5c,1J5@[or[Q6.",
            [
                [176, 118, 163], [167, 119, 184], [118, 100, 169], [167, 79, 126], [149, 142, 180], [109, 138, 198],
                [113, 117, 143], [149, 108, 109], [145, 161, 153], [92, 153, 178], [100, 129, 135], [119, 116, 108],
            ]
        ),
        (
            "L6Pj0^jE.AyE_3t7t7R**0o#DgR4",
            [
                [230, 228, 226], [229, 226, 224], [228, 225, 223], [227, 226, 223], [229, 225, 225], [223, 214, 208],
                [219, 211, 203], [224, 220, 216], [224, 220, 220], [217, 209, 203], [215, 207, 198], [220, 216, 212],
            ]
        ),
        (
            "LKO2:N%2Tw=w]~RBVZRi};RPxuwH",
            [
                [251, 192, 161], [232, 186, 168], [239, 184, 153], [246, 196, 155], [217, 185, 172], [205, 174, 165],
                [211, 170, 158], [209, 175, 156], [207, 196, 184], [189, 172, 165], [195, 157, 156], [194, 166, 163],
            ]
        ),
    ]

    @Test(arguments: published.indices) func decodesThePublishedExamples(index: Int) throws {
        let (text, pixels) = Self.published[index]
        let hash = try BlurHash(text)
        #expect(hash.text == text && hash.columns == 4 && hash.rows == 3)
        let bitmap = try hash.bitmap(width: 4, height: 3)
        #expect(bitmap.width == 4 && bitmap.height == 3)
        let opaque: [UInt8] = pixels.flatMap { $0 + [255] }
        #expect(Array(bitmap.pixels) == opaque)
    }

    @Test func punchRaisesTheContrast() throws {
        let bitmap = try BlurHash(Self.published[0].text).bitmap(width: 2, height: 2, punch: 2)
        #expect(
            Array(bitmap.pixels) == [116, 176, 201, 255, 206, 204, 191, 255, 73, 145, 173, 255, 165, 92, 0, 255])
    }

    @Test(arguments: [
        "", "LEHV6", "LEHV6nWB2yk8pyo0adR*.7kCMdn", "LEHV6nWB2yk8pyo0adR*.7kCMdnjj", "LEHV6nWB2yk8pyo0adR*.7kCMdn\"",
        "LEHV6nWB2yk8pyo0adR*.7kCMdné", "~00000", "0~~~~~", "1000000000", "L6Pj0^jE.AyE_3t7t7R**0o#~~~~",
    ]) func refusesOtherTexts(text: String) {
        // The one with ten digits has two components across, which need eight.
        let error = #expect(throws: HalcyonError.self) { try BlurHash(text) }
        guard case .invalidRequest? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test(arguments: [0, -1, 1025]) func limitsTheSizeOfBitmaps(side: Int) throws {
        let hash = try BlurHash("00OrPN")
        #expect(throws: HalcyonError.self) { try hash.bitmap(width: side, height: 1) }
        #expect(throws: HalcyonError.self) { try hash.bitmap(width: 1, height: side) }
        #expect(try hash.bitmap(width: 1024, height: 1).pixels.count == 4096)
    }

    @Test func parsesColors() throws {
        #expect(try Array(Bitmap(color: "#fE8001").pixels) == [254, 128, 1, 255])
        for text in ["", "#", "fe8001", "#fe800", "#fe80011", "#ge8001", "#+e8001", "#１２３４５６"] {
            #expect(throws: HalcyonError.self) { try Bitmap(color: text) }
        }
    }

    /// The greatest and the mean difference of the samples of two images, 0 to 255.
    private func differences(_ bitmap: Bitmap, _ samples: [UInt8]) -> (greatest: Int, mean: Double) {
        var all: [Int] = []
        for (index, sample) in bitmap.pixels.enumerated() where index % 4 < 3 {
            all.append(abs(Int(sample) - Int(samples[index / 4 * 3 + index % 4])))
        }
        return (all.max() ?? 0, Double(all.reduce(0, +)) / Double(all.count))
    }

    /// For images that consist of few frequencies, a BlurHash contains all but the rounding of its components. (The
    /// cosines begin at the edge of a pixel instead of its middle, so the images must be large in comparison.)
    @Test(arguments: 0..<16) func decodesWhatWorkersEncode(seed: Int) throws {
        var numbers = SeededNumbers(seed: UInt64(seed))
        let components = (x: Int.random(in: 1...4, using: &numbers), y: Int.random(in: 1...4, using: &numbers))
        let (width, height) = (Int.random(in: 120...160, using: &numbers), Int.random(in: 120...160, using: &numbers))
        // A random hash is a random image of such frequencies, with a contrast that does not leave the range of colors.
        let digits = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~")
        func text(_ number: Int, _ count: Int) -> String {
            String((0..<count).reversed().map { digits[number / [1, 83, 6889, 571_787][$0] % 83] })
        }
        var hash = text(components.x - 1 + (components.y - 1) * 9, 1) + text(1, 1)
        func gray() -> Int { Int.random(in: 150...200, using: &numbers) }
        hash += text(gray() << 16 + gray() << 8 + gray(), 4)
        for _ in 1..<max(1, components.x * components.y) {
            func level() -> Int { Int.random(in: 6...12, using: &numbers) }
            hash += text(level() * 361 + level() * 19 + level(), 2)
        }
        let image = try BlurHash(hash).bitmap(width: width, height: height)
        let samples = image.pixels.enumerated().filter { $0.offset % 4 < 3 }.map(\.element)
        let encoded = Encoder.text(of: samples, width: width, height: height, components: components)
        let decoded = try BlurHash(encoded)
        #expect(decoded.columns == components.x && decoded.rows == components.y)
        let difference = differences(try decoded.bitmap(width: width, height: height), samples)
        #expect(difference.mean < 3, "\(difference) \(components)")
        #expect(difference.greatest < 12, "\(difference) \(components)")
    }

    @Test(arguments: ["astronaut.jpg", "chelsea.jpg", "coffee.jpg", "hubble.jpg", "rocket.jpg"])
    func decodesIntoTheBlurredPhotograph(name: String) throws {
        VipsLibrary.start()
        let photograph = try EncodedImage(try SampleImages.bytes(name)).open()
        let scale = 64 / Double(max(photograph.width, photograph.height))
        let small = try photograph.calling("resize", ["scale": .double(scale)])
        let (width, height) = (small.width, small.height)
        let components = width >= height ? (x: 4, y: 3) : (x: 3, y: 4)
        let text = Encoder.text(of: try small.pixels(), width: width, height: height, components: components)
        let bitmap = try BlurHash(text).bitmap(width: width, height: height)
        // In linear light, by about a quarter of a period of the highest frequency.
        let blurred = try small.calling("colourspace", ["space": "scrgb"]).calling("gaussblur", ["sigma": .double(8)])
            .calling("colourspace", ["space": "srgb"])
        let difference = differences(bitmap, try blurred.pixels())
        #expect(difference.mean < 16, "\(difference)")
        // The comparison can fail: the mean color alone is further away.
        let plain = try BlurHash("00" + text.dropFirst(2).prefix(4)).bitmap(width: width, height: height)
        #expect(difference.mean < differences(plain, try blurred.pixels()).mean)
    }
}
