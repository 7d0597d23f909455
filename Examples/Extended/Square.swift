import FoundationEssentials
import HalcyonImaging
import HalcyonModel

/// Crops an image to its center and resizes it to a square, in pixels: `"sizer": {"square": {"side": 200}}`.
struct Square: ImageSizer {
    let name = "square"

    private struct Parameters: Decodable { let side: Int }

    private func side(_ parameters: String) throws(JobError) -> Int {
        let read = try? JSONDecoder().decode(Parameters.self, from: Data(parameters.utf8))
        guard let side = read?.side, (1...4096).contains(side) else {
            throw JobError(.invalidJob, "side: expected a whole number from 1 to 4096")
        }
        return side
    }

    func validate(_ parameters: String) throws(JobError) { _ = try side(parameters) }

    func plan(for size: PixelSize, parameters: String) throws(JobError) -> SizingPlan {
        let side = try side(parameters)
        let shorter = min(size.width, size.height)
        let output = PixelSize(width: side, height: side)
        return SizingPlan(
            sourceRect: PixelRect(
                x: (size.width - shorter) / 2, y: (size.height - shorter) / 2, width: shorter, height: shorter),
            outputSize: output, destRect: PixelRect(output))
    }
}
