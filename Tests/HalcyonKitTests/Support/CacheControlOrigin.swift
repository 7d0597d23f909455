import Subprocess
import TestSupport

/// An origin of images whose `Cache-Control` is the query of the request, such as `no-store`. At the 400 by 300 of the
/// examples the images are delivered unchanged: `/small` is a photograph with a small event, `/middle` is larger than
/// the events that a gateway remembers, and `/large` is larger than an event can be.
struct CacheControlOrigin: Sendable {
    let origin: RawOrigin

    /// The names of the images, the first bytes of their results, and the minimum sizes of these.
    static let images: [(name: String, start: [UInt8], bytes: Int)] = [
        ("small", [0xff, 0xd8], 1000), ("middle", [0x89, 0x50], 64 << 10), ("large", [0x47, 0x49], 700 << 10),
    ]

    static func start() async throws -> CacheControlOrigin {
        let folder = TemporaryFolder("noise")
        let line = """
            cd "$0" && vips gaussnoise noise.v 400 3000 --mean 128 --sigma 60 && vips cast noise.v grey.v uchar &&
            vips crop grey.v middle.png 0 0 400 300 && vips copy grey.v large.gif[page-height=300]
            """
        let exit = try await ChildProcess.start("/bin/sh", ["-c", line, folder.path]).exit()
        precondition(exit == .code(0), "vips failed to create the images")
        let files = [
            "small": try SampleImages.bytes("coffee.jpg"), "middle": folder.read("middle.png"),
            "large": folder.read("large.gif"),
        ]
        await folder.remove()
        return CacheControlOrigin(
            origin: RawOrigin { request in
                let parts = request.path.dropFirst().split(separator: "?").map(String.init)
                guard let body = files[parts[0]] else { return RawOrigin.answer("404 Not Found") }
                return RawOrigin.Step.response(body, ["Cache-Control: \(parts[1])"])
            })
    }

    func url(_ image: String, _ cacheControl: String) -> String { origin.url("/\(image)?\(cacheControl)") }
}
