import HTTPServer
import HalcyonModel
import HalcyonWire
import JSON

/// The job that the query of a URL describes: `source=https://…&width=400&format=auto`. A pure value.
///
/// Parameters have the names of the job's fields, and the values that the command line takes: words as they are, numbers, `true`, four numbers
/// with commas between them for a rectangle, and `pixels` as a fifth part where they are such, two for a point, and JSON for everything else.
struct RenderQuery {
    /// The job, without an id.
    let draft: JobDraft
    /// How long to wait for it; nil for as long as the gateway waits.
    let wait: Wait?

    /// Fields whose value is a word or a text, whatever it looks like.
    static let texts: Set = [
        "contentMode", "scaleOptions", "interpolationQuality", "background", "format", "tenant", "priority",
        "tolerance",
    ]
    /// Fields that may be texts, and otherwise are what they look like.
    static let values: Set = [
        "source", "width", "height", "screenScale", "cropRect", "gravity", "sizeForDisplay", "sizer", "upscale",
        "processors", "quality", "lossless", "effort", "progressive", "stripMetadata", "keepProfile", "frames",
        "maxAge",
        "cache", "tags",
    ]
    /// What is about the URL and not the image (``URLSigner``).
    static let others: Set = ["signature", "expires", "keyId"]

    /// - Throws: ``Problem`` that names the parameter.
    init(_ items: [HTTPServer.QueryItem]) throws(Problem) {
        var (draft, wait, seen): (JobDraft, Wait?, Set<String>) = (JobDraft(), nil, [])
        for item in items {
            guard seen.insert(item.name).inserted else { throw Problem(.badRequest, "\(item.name) is given twice") }
            switch item.name {
            case "wait": wait = try Wait(item.value)
            case _ where Self.others.contains(item.name): continue
            case _ where Self.texts.contains(item.name): draft.set(item.name, item.value)
            case _ where Self.values.contains(item.name): draft[item.name] = Self.json(item)
            default:
                throw Problem(
                    .badRequest, "\(item.name) is no parameter of an image; they have the names of a job's fields")
            }
        }
        guard seen.contains("source") else { throw Problem(.badRequest, "source is missing: say what to load") }
        self.draft = draft
        self.wait = wait
    }

    private static func json(_ item: HTTPServer.QueryItem) -> [UInt8] {
        let parts = item.value.split(separator: ",", omittingEmptySubsequences: false)
        let numbers = parts.map { Double($0) }
        switch (item.name, numbers.count) {
        case ("cropRect", 5) where parts[4] == "pixels":
            if let json = object(["x", "y", "width", "height"], Array(numbers.prefix(4)), unit: "pixels") {
                return json
            }
        case ("cropRect", 4): if let json = object(["x", "y", "width", "height"], numbers) { return json }
        case ("gravity", 2): if let json = object(["x", "y"], numbers) { return json }
        case ("tags", _) where !item.value.hasPrefix("["):
            return item.value.split(separator: ",").map { String($0) }.json
        default: break
        }
        // A source that begins like a number is a text all the same.
        let isText = item.name == "source" && !item.value.hasPrefix("{")
        let bytes = Array(item.value.utf8)
        // A value that is not JSON is a text without quotes.
        if !isText, !bytes.isEmpty, (try? JSON.parse(bytes, maximumSize: bytes.count)) != nil { return bytes }
        return item.value.json
    }

    private static func object(_ names: [String], _ numbers: [Double?], unit: String? = nil) -> [UInt8]? {
        var object = JobDraft()
        for (name, number) in zip(names, numbers) {
            guard let number, number.isFinite else { return nil }
            object.set(name, number)
        }
        if let unit { object.set("unit", unit) }
        return object.json
    }
}

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
