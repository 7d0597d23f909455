import Glibc
import HalcyonImaging
import HalcyonModel
import HalcyonWire
import Vips

/// Fuzzes the way from a job and a file to its images.
///
///     JobFuzzer seeds FOLDER      writes the files to begin with, and `FOLDER.dict`
///     JobFuzzer [libFuzzer's options] FOLDER…
///
/// An input is a job's JSON, a zero byte, and the file. A finding is a crash, a failure of code `internal` or `poison`,
/// an error that is no failure, an object of libvips that outlives its rendering, or what libFuzzer itself limits: memory
/// and time.
enum JobFuzzer {
    /// Little of everything, so that many inputs are tried in a second.
    static let limits = ImageLimits(sourcePixels: 1_000_000, decodedBytes: 64 << 20, outputPixels: 250_000)

    static func run(_ input: UnsafeBufferPointer<UInt8>) {
        guard let separator = input.firstIndex(of: 0) else { return }
        let reader = JobReader(isStrict: false)
        guard let job = try? reader.read(Array(input[..<separator]), defaultID: "fuzz").job else { return }
        do {
            let file = Array(input[(separator + 1)...])
            // What overlays and watermarks take is as hostile.
            let assets = Dictionary(job.variants.flatMap(\.assets).map { ($0, file) }) { first, _ in first }
            _ = try Renderer(limits: limits).render(file, job.variants, assets: assets)
        } catch let failure as Failure {
            let expected: [FailureCode] = [.corruptImage, .unsupportedFormat, .tooManyPixels]
            guard expected.contains(failure.code) else { fatalError("\(failure)") }
        } catch {
            fatalError("not a failure: \(error)")
        }
        guard VipsLibrary.liveObjects == 0 else { fatalError("libvips still holds \(VipsLibrary.liveObjects) objects") }
    }
}

// The program's main is libFuzzer's, which calls these two.

@_cdecl("LLVMFuzzerInitialize") func start(
    _ count: UnsafePointer<Int32>, _ arguments: UnsafePointer<UnsafePointer<UnsafePointer<CChar>>>
) -> Int32 {
    VipsLibrary.start()
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
