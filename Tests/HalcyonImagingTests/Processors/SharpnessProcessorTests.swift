import Foundation
import HalcyonModel
import TestSupport
import Testing

@testable import HalcyonImaging

/// Blur and sharpen, compared with a direct convolution.
@Suite(.limitedParallelism) struct SharpnessProcessorTests {
    /// An image of shapes and gradients with hard edges.
    static func shapes(_ width: Int, _ height: Int) -> Bitmap {
        var picture = Bitmap([0], width: width, height: height)
        for y in 0..<height {
            for x in 0..<width {
                let isDisc =
                    (x - width / 3) * (x - width / 3) + (y - height / 2) * (y - height / 2) < height * height / 9
                picture[x, y] = [isDisc ? 230 : x > width * 3 / 4 ? 20 : UInt8(60 + 100 * y / height)]
            }
        }
        return picture
    }

    /// Returns a Gaussian blur of the image, computed in doubles to 4 deviations, with repeated edges.
    static func gaussian(_ picture: Bitmap, _ deviation: Double) -> [Double] {
        let reach = Int(deviation * 4)
        let weights = (-reach...reach).map { exp(-Double($0 * $0) / (2 * deviation * deviation)) }
        let sum = weights.reduce(0, +)
        func pass(_ samples: [Double], _ count: Int, _ stride: Int, _ lines: Int, _ lineStride: Int) -> [Double] {
            var result = samples
            for line in 0..<lines {
                for position in 0..<count {
                    var value = 0.0
                    for (index, weight) in weights.enumerated() {
                        let from = min(max(position + index - reach, 0), count - 1)
                        value += weight * samples[line * lineStride + from * stride]
                    }
                    result[line * lineStride + position * stride] = value / sum
                }
            }
            return result
        }
        let across = pass(picture.bytes.map(Double.init), picture.width, 1, picture.height, picture.width)
        return pass(across, picture.height, picture.width, picture.width, 1)
    }

    /// Returns the mean and the maximum difference of the blur from the direct convolution.
    static func error(_ deviation: Double, _ width: Int, _ height: Int) async throws -> (mean: Double, maximum: Double)
    {
        let picture = shapes(width, height)
        let blurred = try await applied(.blur(radius: deviation), to: picture)
        let differences = zip(blurred.bytes, gaussian(picture, deviation)).map { abs(Double($0) - $1) }
        return (differences.reduce(0, +) / Double(differences.count), differences.max() ?? 0)
    }

    @Test(arguments: [0.5, 1, 2.3, 5, 8, 13, 25])
    func blurIsAGaussian(_ deviation: Double) async throws {
        let error = try await Self.error(deviation, 130, 97)
        #expect(error.mean < 0.6 && error.maximum < 4, "\(deviation): \(error)")
    }

    @Test func blurKeepsUniformImages() async throws {
        for deviation in [0.3, 4, 60, 250] {
            for (width, height) in [(40, 30), (1, 1), (1, 50), (300, 2)] {
                let blurred = try await applied(
                    .blur(radius: deviation), to: Bitmap([200, 100, 50, 255], width: width, height: height))
                #expect(Set(blurred.bytes) == [200, 100, 50, 255], "\(deviation) on \(width)×\(height)")
            }
        }
    }

    @Test func costOfAWideBlurIsLimited() {
        // The cost of a convolution: pixels times the weights of both passes.
        for deviation in [1.0, 7.9, 10, 100, 250] {
            for size in [PixelSize(width: 8000, height: 8000), PixelSize(width: 100_000, height: 640)] {
                let blur = GaussianBlur(deviation: deviation, on: size)
                let pixels = size.pixels / (blur.across.factor * blur.down.factor)
                let work = pixels * (blur.across.weights.count + blur.down.weights.count)
                #expect(work <= size.pixels * 100, "\(deviation): \(work / size.pixels)")
            }
        }
    }

    @Test func sharpenAddsWhatTheBlurRemoves() async throws {
        let picture = Self.shapes(60, 40)
        let sharp = try await applied(.sharpen(Sharpen(radius: 2, amount: 1.5)), to: picture)
        let soft = Self.gaussian(picture, 2)
        for (index, sample) in picture.bytes.enumerated() {
            let expected = min(max(Double(sample) + 1.5 * (Double(sample) - soft[index]), 0), 255)
            #expect(abs(Double(sharp.bytes[index]) - expected) < 3)
        }
        #expect(try await applied(.sharpen(Sharpen(radius: 2, amount: 0)), to: picture).bytes == picture.bytes)
    }

    @Test func sharpenChangesOnlyLightness() async throws {
        var picture = Bitmap([120, 90, 60, 200], width: 30, height: 20)
        for y in 0..<20 { for x in 15..<30 { picture[x, y] = [160, 130, 100, 200] } }
        let sharp = try await applied(.sharpen(Sharpen(radius: 1.5, amount: 1)), to: picture)
        #expect(sharp[14, 10][0] < 120 && sharp[15, 10][0] > 160)
        for y in 0..<20 {
            for x in 0..<30 {
                let pixel = sharp[x, y].map(Int.init)
                #expect(abs(pixel[0] - pixel[1] - 30) <= 1 && abs(pixel[1] - pixel[2] - 30) <= 1 && pixel[3] == 200)
            }
        }
        #expect(sharp[2, 10] == [120, 90, 60, 200])
    }
}
