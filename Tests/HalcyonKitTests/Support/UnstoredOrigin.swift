import Subprocess
import TestSupport

/// An origin of pictures that may not be stored. The examples' 400 by 300 leave each as it is: `/small` is a photograph
/// with a small event, `/middle` is larger than the events that a gateway remembers, and `/large` is larger than an
/// event can be. The query is the `Cache-Control` of the response.
struct UnstoredOrigin: Sendable {
    let origin: RawOrigin

    /// The first bytes of what is delivered of a picture, and its least size.
    static let pictures: [(name: String, start: [UInt8], bytes: Int)] = [
        ("small", [0xff, 0xd8], 1000), ("middle", [0x89, 0x50], 64 << 10), ("large", [0x47, 0x49], 700 << 10),
    ]

    static func start() async throws -> UnstoredOrigin {
        let folder = TemporaryFolder("noise")
        let line = """
            cd "$0" && vips gaussnoise noise.v 400 3000 --mean 128 --sigma 60 && vips cast noise.v grey.v uchar &&
            vips crop grey.v middle.png 0 0 400 300 && vips copy grey.v large.gif[page-height=300]
            """
        let exit = try await ChildProcess.start("/bin/sh", ["-c", line, folder.path]).exit()
        precondition(exit == .code(0), "vips has made no noise")
        let files = [
            "small": try SampleImages.bytes("coffee.jpg"), "middle": folder.read("middle.png"),
            "large": folder.read("large.gif"),
        ]
        await folder.remove()
        return UnstoredOrigin(
            origin: RawOrigin { request in
                let parts = request.path.dropFirst().split(separator: "?").map(String.init)
                guard let body = files[parts[0]] else { return RawOrigin.answer("404 Not Found") }
                return RawOrigin.Step.response(body, ["Cache-Control: \(parts[1])"])
            })
    }

    func url(_ picture: String, _ cacheControl: String) -> String { origin.url("/\(picture)?\(cacheControl)") }
}
