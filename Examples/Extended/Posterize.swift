import FoundationEssentials
import HalcyonImaging
import HalcyonModel
import Vips

/// Reduces each color channel to a few levels: `{"posterize": {"levels": 4}}`.
struct Posterize: ImageProcessor {
    let name = "posterize"

    private struct Parameters: Decodable {
        var levels = 4

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            levels = try container.decodeIfPresent(Int.self, forKey: .levels) ?? 4
        }

        enum CodingKeys: CodingKey { case levels }
    }

    private func levels(_ parameters: String) throws(JobError) -> Int {
        let read = try? JSONDecoder().decode(Parameters.self, from: Data(parameters.utf8))
        guard let levels = read?.levels, (2...64).contains(levels) else {
            throw JobError(.invalidJob, "levels: expected a whole number from 2 to 64")
        }
        return levels
    }

    func validate(_ parameters: String) throws(JobError) { _ = try levels(parameters) }

    func process(_ image: Image, parameters: String) throws -> Image {
        let levels = try levels(parameters)
        // The same table for all color channels, and an identity table for alpha.
        let colours = image.hasAlpha ? image.bands - 1 : image.bands
        let table = (0..<256).flatMap { value -> [UInt8] in
            let level = value * levels / 256
            let poster = UInt8(level * 255 / (levels - 1))
            return [UInt8](repeating: poster, count: colours) + (image.hasAlpha ? [UInt8(value)] : [])
        }
        let tables = try Image(pixels: table, width: 256, height: 1, bands: image.bands)
        return try Operation.call("maplut", ["in": .image(image), "lut": .image(tables)]).image()
    }
}
