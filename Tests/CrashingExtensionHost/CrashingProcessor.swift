import HalcyonImaging
import HalcyonModel
import Vips

/// Leaves the picture as it is, if it comes to that.
struct CrashingProcessor: ImageProcessor {
    let name = "deadly"

    func validate(_ parameters: String) throws(JobError) { _ = try Death(parameters) }

    func process(_ image: Image, parameters: String) throws -> Image {
        try Death(parameters).happen()
        return image
    }
}
