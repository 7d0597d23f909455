/// How a span of pixels along one axis becomes a given number of pixels.
///
/// The span may begin and end inside pixels, when the decoder has shrunk the picture. libvips crops at whole pixels and
/// resizes about the middle of what it gets, so the crop is chosen such that its middle is as near as can be to the
/// span's, and the scale is the span's own: what remains is a shift of at most a quarter of a decoded pixel, plus what
/// the decoder cut off at the picture's end.
struct Resampling: Hashable {
    /// The first pixel that is used.
    let start: Int
    /// How many are used.
    let length: Int
    /// Output pixels per pixel.
    let scale: Double

    /// - Parameters:
    ///   - span: in pixels of the decoded picture, not empty.
    ///   - count: how many pixels the decoded picture has.
    ///   - target: how many pixels the span becomes.
    init(_ span: Range<Double>, of count: Int, to target: Int) {
        let extent = span.upperBound - span.lowerBound
        let middle = (span.lowerBound + span.upperBound) / 2
        let scale = Double(target) / extent

        /// The crop of `length` pixels whose middle is nearest, and how far off it is.
        func crop(_ length: Int) -> (start: Int, length: Int, error: Double) {
            let ideal = middle - Double(length) / 2
            let start = min(max(0, Int(ideal.rounded())), count - length)
            return (start, length, abs(Double(start) - ideal))
        }
        let lengths = Set(
            [extent.rounded(.down), extent.rounded(), extent.rounded(.up)].map { min(max(1, Int($0)), count) })
        // libvips rounds the size of its output: only lengths that round to the target will do.
        let fitting = lengths.filter { abs(Double($0) * scale - Double(target)) < 0.49 }
        if let best = fitting.map(crop).min(by: { ($0.error, $0.length) < ($1.error, $1.length) }) {
            self.init(start: best.start, length: best.length, scale: best.length == target ? 1 : scale)
        } else {
            let nearest = crop(min(max(1, Int(extent.rounded())), count))
            self.init(start: nearest.start, length: nearest.length, scale: Double(target) / Double(nearest.length))
        }
    }

    private init(start: Int, length: Int, scale: Double) {
        self.start = start
        self.length = length
        self.scale = scale
    }
}
