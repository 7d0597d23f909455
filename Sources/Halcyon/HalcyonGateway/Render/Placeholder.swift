import HTTPServer
import HalcyonModel

/// What stands in the place of an image that could not be made, for a client that wants an image: grey, and as large as the image would be.
///
/// It comes with the status of what is wrong and is stored nowhere; the failure code stands in `Halcyon-Failure`.
struct Placeholder {
    private let width: Int
    private let height: Int

    /// Of the pixels of the job's first variant where it has a display; else a square.
    init(for job: Job) {
        guard let sizing = job.variants.first?.sizing, case .display(let display) = sizing.goal else {
            (width, height) = (100, 100)
            return
        }
        width = Self.side(display.width * sizing.screenScale)
        height = Self.side(display.height * sizing.screenScale)
    }

    private static func side(_ pixels: Double) -> Int { Int(min(max(pixels, 1), 4096)) }

    /// The picture. Nothing in it comes from outside but two numbers.
    private var svg: String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)" viewBox="0 0 100 100" \
        preserveAspectRatio="xMidYMid slice"><rect x="-1000" y="-1000" width="2100" height="2100" fill="#e4e4e7"/>\
        <path d="M30 66l14-18 10 12 8-9 10 15zM62 38a5 5 0 1 1 0 .1" fill="#a1a1aa"/></svg>
        """
    }

    /// In place of a problem's own answer.
    func response(for problem: Problem) -> HTTPServer.Response {
        var response = problem.response
        response.headers["Content-Type"] = ImageFormat.svg.mediaType
        response.headers["Halcyon-Failure"] = problem.code ?? problem.kind.rawValue
        response.body = .bytes(Array(svg.utf8))
        return response
    }
}
