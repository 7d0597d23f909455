import Foundation
import HalcyonModel
import Testing

import struct HalcyonCoding.InvalidJobError
import struct HalcyonCoding.JobDecoder
import struct HalcyonCoding.Preset

@testable import HalcyonKit

/// Jobs that the client encodes and the decoder of the workers decodes in strict mode.
@Suite struct ImageJobTests {
    /// Decodes an encoded job strictly and returns its id.
    private func decodedID(of job: ImageJob) throws -> String {
        let json = try JSONEncoder().encode(job)
        var decoder = JobDecoder()
        decoder.isStrict = true
        decoder.findPreset = { name in
            name == "card" ? try? Preset(name, json: Array(#"{"job":{"height":8}}"#.utf8)) : nil
        }
        let decoded = try decoder.read([UInt8](json), defaultID: "none")
        #expect(decoded.unknownFields.isEmpty)
        return decoded.job.id
    }

    @Test func workersAcceptEveryField() throws {
        var output = ImageJob.Output(
            width: 400, height: 300, screenScale: 2, contentMode: .scaleAspectFill, processors: [.blackWhite],
            format: .webp)
        output.scaleOptions = .fitCropsExcess
        output.cropRect = ImageJob.CropRect(x: 0.1, y: 0, width: 0.5, height: 1)
        output.gravity = .point(x: 0.3, y: 0.7)
        output.sizeForDisplay = true
        output.upscale = false
        output.interpolationQuality = .medium
        output.background = "#fff"
        (output.quality, output.effort, output.frames) = (80, 4, 1)
        (output.lossless, output.progressive, output.stripMetadata, output.keepProfile) = (false, false, true, false)
        (output.maximumBytes, output.allowResize, output.nearLossless) = (50_000, true, true)
        (output.chromaSubsampling, output.profile) = (ImageJob.ChromaSubsampling.full, .p3)
        output.bitDepth = 8
        output.quantize = ImageJob.Quantization(colors: 16, dither: 0.5)
        (output.blurhash, output.dominantColor, output.tolerance) = (true, true, .truncated)
        (output.palette, output.thumbhash, output.phash, output.info) = (true, true, true, .init(location: true))
        output.faces = true
        var variant = ImageJob.Output()
        (variant.name, variant.sizer) = ("small", .aspectScaleDownByWidth(60))
        (variant.format, variant.quality) = (.best, .target(0.98))
        var natural = ImageJob.Output()
        (natural.sizer, natural.gravity) = (.natural, .attention)

        var job = ImageJob("https://example.org/cat.jpg", output, variants: [variant, natural])
        job.id = "one"
        job.maxAge = 60
        job.partial = true
        job.cache = ImageJob.Cache(memory: true, source: false, reload: true)
        (job.delivery, job.priority, job.deadline) = (.inline, .low, .after(30))
        (job.slot, job.generation) = ("cell-12", 7)
        (job.placeholder, job.altText, job.metadata) = ("L", "a cat", ["article": 17, "tags": [nil, true, 0.5]])
        (job.tags, job.webhook, job.headers, job.tenant) = (["a"], "shop", ["Accept": "image/webp"], "shop-7")
        (job.alternatives, job.fallback) = (["https://mirror.example.org/cat.jpg"], .source("initials:JD"))
        #expect(try decodedID(of: job) == "one")
        job.fallback = ImageJob.Fallback.none
        job.deadline = .at(Date(timeIntervalSince1970: 1_790_000_000))
        #expect(try decodedID(of: job) == "one")
    }

    @Test func workersAcceptPresets() throws {
        var job = ImageJob("initials:JD")
        job.preset = "card"
        #expect(try decodedID(of: job) == "none")
        job.output.width = 8
        #expect(throws: InvalidJobError.self) { try decodedID(of: job) }
    }

    @Test(
        arguments: [
            "initials:JD", .initials("JD", background: "#369", foreground: "white"), .bytes(Data("GIF89a".utf8)),
            .bytes(Data("GIF89a".utf8), cacheKey: "dot"), .video("https://example.org/cat.mp4", seconds: 15),
            ImageJob.Source(URL(string: "s3://pictures/2026/cat.jpg")!),
        ] as [ImageJob.Source]) func workersAcceptEverySource(source: ImageJob.Source) throws
    {
        #expect(try decodedID(of: ImageJob(source, width: 8)) == "none")
    }

    @Test(
        arguments: [
            .roundCorner(.points(8)), .roundCorner(.widthFraction(0.5), background: "red"),
            .resize(width: 8, height: 9), .crop(width: 8, height: 9, x: 0, y: 1), .blur(radius: 2), .tint("red"),
            .overlay(color: "blue"), .overlay("initials:A", opacity: 0.5), .blend("multiply", background: "red"),
            .colorControls(brightness: 0.5, contrast: 2, saturation: 0, exposure: 1), .blackWhite,
            .border(width: 2), .border(width: 2, color: "red", .heightFraction(0.1)), .downsample(width: 9, height: 8),
            .sharpen(), .pixelate(size: 4), .watermark("initials:B", position: .topLeft, margin: 2, widthFraction: 0.2),
            .watermark("initials:B", tiled: true), .rotate(degrees: 30), .flip(), .flip(.both),
        ] as [ImageJob.Processor]) func workersAcceptEveryProcessor(processor: ImageJob.Processor) throws
    {
        #expect(try decodedID(of: ImageJob("initials:A", width: 8, processors: [processor])) == "none")
    }

    @Test(
        arguments: [
            .reference, .inline, .put(URL(string: "https://example.org/a?b=c%20d")!),
            .put(template: "https://example.org/{variant}.{format}"), .put(["0": URL(string: "https://example.org/")!]),
        ] as [ImageJob.Delivery])
    func workersAcceptEveryDelivery(delivery: ImageJob.Delivery) throws {
        var job = ImageJob("initials:A", width: 8)
        job.delivery = delivery
        #expect(try decodedID(of: job) == "none")
    }

    @Test(arguments: ImageJob.ContentMode.allCases) func workersAcceptEveryContentMode(mode: ImageJob.ContentMode)
        throws
    {
        #expect(try decodedID(of: ImageJob("initials:A", width: 8, height: 9, contentMode: mode)) == "none")
    }

    private static let formats: [ImageJob.Format] = [.jpeg, .png, .webp, .avif, .gif, .tiff, .jxl]

    @Test func workersAcceptEveryScaleQualityAndFormat() throws {
        for options in ImageJob.ScaleOptions.allCases {
            for quality in ImageJob.InterpolationQuality.allCases {
                for format in Self.formats {
                    var output = ImageJob.Output(width: 8, height: 9, format: format)
                    (output.scaleOptions, output.interpolationQuality) = (options, quality)
                    #expect(try decodedID(of: ImageJob("initials:A", output)) == "none")
                }
            }
        }
    }

    /// The client has its own types, so that apps need not import the model. Both must stay equal.
    @Test func valuesMatchTheModel() {
        func values<Value: CaseIterable & RawRepresentable<String>>(_ type: Value.Type) -> Set<String> {
            Set(type.allCases.map(\.rawValue))
        }
        #expect(values(ImageJob.ContentMode.self) == values(HalcyonModel.ContentMode.self))
        #expect(values(ImageJob.ScaleOptions.self) == values(HalcyonModel.ScaleOptions.self))
        #expect(values(ImageJob.InterpolationQuality.self) == values(HalcyonModel.InterpolationQuality.self))
        #expect(values(ImageJob.Tolerance.self) == values(HalcyonModel.Tolerance.self))
        #expect(values(ImageJob.CropRect.Unit.self) == values(HalcyonModel.CropRect.Unit.self))
        #expect(values(ImageJob.Processor.Flip.self) == values(HalcyonModel.Flip.self))
        #expect(Set(Self.formats.map(\.rawValue)) == Set(HalcyonModel.ImageFormat.writable.map(\.rawValue)))
        let lanes: [ImageJob.Priority] = [.high, .normal, .low]
        #expect(Set(lanes.map(\.rawValue)) == values(HalcyonModel.Lane.self))
    }

    @Test func encodesUnknownValuesUnchanged() throws {
        var job = ImageJob("initials:A", width: 8, format: ImageJob.Format(rawValue: "jxr"))
        job.output.gravity = ImageJob.Gravity(rawValue: ["face": 1])
        let json = try JSONDecoder().decode(JSONValue.self, from: try JSONEncoder().encode(job))
        #expect(json == ["source": "initials:A", "width": 8, "format": "jxr", "gravity": ["face": 1]])
    }

    @Test func outputSurvivesARoundTrip() throws {
        var output = ImageJob.Output(width: 8, contentMode: .top, processors: [.border(width: 2), .blackWhite])
        (output.gravity, output.sizer) = (.point(x: 0.5, y: 1), .natural)
        #expect(try JSONDecoder().decode(ImageJob.Output.self, from: try JSONEncoder().encode(output)) == output)
    }

    @Test func jsonSurvivesARoundTrip() throws {
        let value: JSONValue = ["a": [1, 2.5, "x", nil, true], "b": ["c": false]]
        #expect(try JSONDecoder().decode(JSONValue.self, from: try JSONEncoder().encode(value)) == value)
    }
}
