import Foundation

/// The sample photographs that come with Halcyon.
public enum SampleImages {
    /// The path of the folder of the photographs.
    public static let folder = Repository.path("Samples")

    /// Returns the bytes of a photograph.
    public static func bytes(_ name: String = "rocket.jpg") throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(filePath: "\(folder)/\(name)")))
    }

    /// Starts an origin that responds to every request with a photograph.
    /// - Parameters:
    ///   - headers: Header lines of the responses.
    ///   - pause: The delay before each response.
    public static func origin(
        _ headers: [String] = ["Cache-Control: max-age=600"], after pause: Duration? = nil
    ) throws -> RawOrigin {
        let steps = (pause.map { [.pause($0)] } ?? []) + RawOrigin.Step.response(try bytes(), headers)
        return RawOrigin { _ in steps }
    }
}

extension RawOrigin.Step {
    /// Returns the steps of a response with a status, headers and a body.
    public static func response(
        _ body: [UInt8], _ headers: [String] = [], status: String = "200 OK"
    ) -> [RawOrigin.Step] {
        let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.count)"] + headers
        return [.text(lines.joined(separator: "\r\n") + "\r\n\r\n"), .bytes(body)]
    }
}
