import Glibc
import HalcyonCoding
import HalcyonImaging
import HalcyonModel
import Vips

/// Fuzzes job decoding and rendering.
///
///     JobFuzzer seeds FOLDER      writes the seed corpus and `FOLDER.dict`
///     JobFuzzer [libFuzzer options] FOLDER…
///
/// An input consists of the JSON of a job, a zero byte, and an image file, whose bytes also determine what a detector
/// finds in it. A finding is a crash, a job error with an unexpected code such as `internal` or `poison`, any other
/// error, a leaked libvips object, or an input that exceeds libFuzzer's limits on memory and time.
enum JobFuzzer {
    /// The only documents that are rendered. Poppler needs unlimited memory for some malformed ones, which render
    /// processes limit and this process cannot.
    private static let documents = Set(Seeds.malformed.filter(isDocument))

    /// Low limits, for many inputs per second.
    static let limits = ImageLimits(sourcePixels: 1_000_000, decodedBytes: 64 << 20, outputPixels: 250_000)

    static func run(_ input: UnsafeBufferPointer<UInt8>) {
        guard let separator = input.firstIndex(of: 0) else { return }
        let reader = JobDecoder(isStrict: false)
        guard let job = try? reader.read(Array(input[..<separator]), defaultID: "fuzz").job else { return }
        do {
            let file = Array(input[(separator + 1)...])
            guard !isDocument(file) || documents.contains(file) else { return }
            // Overlays and watermarks use the same malformed file.
            let assets = Dictionary(job.variants.flatMap(\.assets).map { ($0, file) }) { first, _ in first }
            let renderer = Renderer(limits: limits)
            let boxes = boxes(file)
            var variants = job.variants
            for index in variants.indices {
                let side = Int(file.first ?? 0) + 1
                variants[index].sizing = try variants[index].sizing.resolved(
                    boxes, of: PixelSize(width: side, height: 2 * side))
            }
            let faces = Dictionary(variants.map { ($0.page, boxes) }) { first, _ in first }
            let plan = try renderer.plan(renderer.identify(file), variants, assets: assets)
            _ = try renderer.render(plan, assets: assets, faces: faces)
        } catch let failure as JobError {
            // A font may be unknown, a part outside of the image, and no encoding small enough.
            let expected: [JobErrorCode] = [
                .corruptImage, .unsupportedFormat, .tooManyPixels, .invalidJob, .tooLarge,
            ]
            guard expected.contains(failure.code) else { fatalError("\(failure)") }
        } catch {
            fatalError("unexpected error type: \(error)")
        }
        guard VipsLibrary.liveObjects == 0 else { fatalError("libvips leaked \(VipsLibrary.liveObjects) objects") }
    }

    private static func isDocument(_ file: [UInt8]) -> Bool { (try? EncodedImage(file))?.format == .pdf }

    /// Up to 16 boxes that a reply of a detector may contain.
    private static func boxes(_ bytes: [UInt8]) -> [DetectedBox] {
        let values = bytes.suffix(80).map { Double($0) / 128 }
        return stride(from: 0, to: values.count - values.count % 5, by: 5).map { start in
            DetectedBox(
                x: values[start] - 0.5, y: values[start + 1] - 0.5, width: values[start + 2] + 0.001,
                height: values[start + 3] + 0.001, confidence: values[start + 4] / 2)
        }
    }
}

// libFuzzer provides the main function and calls these two functions.

@_cdecl("LLVMFuzzerInitialize") func start(
    _ count: UnsafePointer<Int32>, _ arguments: UnsafePointer<UnsafePointer<UnsafePointer<CChar>>>
) -> Int32 {
    VipsLibrary.start()
    Fonts.use(folder: "/usr/share/fonts")
    guard count.pointee == 3, String(cString: arguments.pointee[1]) == "seeds" else { return 0 }
    do {
        try Seeds.write(to: String(cString: arguments.pointee[2]))
    } catch {
        fatalError("\(error)")
    }
    exit(0)
}

@_cdecl("LLVMFuzzerTestOneInput") func test(_ data: UnsafePointer<UInt8>?, _ size: Int) -> Int32 {
    JobFuzzer.run(UnsafeBufferPointer(start: data, count: size))
    return 0
}
