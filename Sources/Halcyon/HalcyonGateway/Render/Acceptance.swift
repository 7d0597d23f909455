import HalcyonModel

/// What a client takes, by its `Accept` (RFC 9110, 12.5.1). A pure value.
struct Acceptance: Hashable {
    private struct Range: Hashable {
        let type: Substring
        let subtype: Substring
        let quality: Double
    }

    /// nil where there is no such header: everything.
    private let ranges: [Range]?

    /// - Parameter header: the value of `Accept`; nil where there is none. What is no media range in it is passed over.
    init(_ header: String?) {
        ranges = header.map { header in
            header.split(separator: ",").compactMap { item in
                let parts = item.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
                guard let names = parts.first?.split(separator: "/"), names.count == 2 else { return nil }
                let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
                return Range(type: names[0], subtype: names[1], quality: min(max(weight, 0), 1))
            }
        }
    }

    /// Whether it names this format, so that it is not taken by a client that knows nothing of it.
    func names(_ format: ImageFormat) -> Bool {
        (ranges ?? []).contains { "\($0.type)/\($0.subtype)" == format.mediaType && $0.quality > 0 }
    }

    /// Whether some image is taken.
    var takesImages: Bool {
        guard let ranges, !ranges.isEmpty else { return true }
        return ranges.contains { ($0.type == "image" || $0.type == "*") && $0.quality > 0 }
    }

    /// Whether images are what it asks for, as browsers do for `<img>`: then a picture says better than words that something is wrong.
    var prefersImages: Bool { (ranges ?? []).contains { $0.type == "image" && $0.quality > 0 } }
}
