import Foundation

/// The sample photographs that come with Halcyon.
public enum SampleImages {
    /// Where they are.
    public static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Samples")
        .standardized.path

    /// The bytes of one.
    public static func bytes(_ name: String = "rocket.jpg") throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(filePath: "\(folder)/\(name)")))
    }

    /// An origin that gives one, whatever it is asked for.
    /// - Parameter pause: how long it takes to begin.
    public static func origin(
        _ headers: [String] = ["Cache-Control: max-age=600"], after pause: Duration? = nil
    ) throws -> RawOrigin {
        let steps = (pause.map { [.pause($0)] } ?? []) + RawOrigin.Step.response(try bytes(), headers)
        return RawOrigin { _ in steps }
    }
}

extension RawOrigin.Step {
    /// A response of 200 with these headers and this body, in pieces for a script.
    public static func response(
        _ body: [UInt8], _ headers: [String] = [], status: String = "200 OK"
    ) -> [RawOrigin.Step] {
        let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.count)"] + headers
        return [.text(lines.joined(separator: "\r\n") + "\r\n\r\n"), .bytes(body)]
    }
}
