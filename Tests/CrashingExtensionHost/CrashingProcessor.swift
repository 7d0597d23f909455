import HalcyonImaging
import HalcyonModel
import Vips

/// A processor that crashes or hangs. If it returns, it leaves the image unchanged.
struct CrashingProcessor: ImageProcessor {
    let name = "crashing"

    func validate(_ parameters: String) throws(JobError) { _ = try CrashParameters(parameters) }

    func process(_ image: Image, parameters: String) throws -> Image {
        try CrashParameters(parameters).crash()
        return image
    }
}
