import HTTPServer
import HalcyonCoding
import HalcyonModel
import JSON

/// The job that the query of a URL describes: `source=https://…&width=400&format=auto`. A pure value.
///
/// Parameters have the names of the job's fields and the value syntax of the command line: plain words, numbers,
/// `true`, four comma-separated numbers for a rectangle with an optional `pixels` as the fifth part, two for a point,
/// and JSON for everything else.
struct RenderQuery {
    /// The job, without an id.
    let draft: JobBuilder
    /// The time to wait for the image; nil for the gateway's default.
    let wait: WaitParameter?

    /// Fields whose value is always a string.
    static let texts: Set = [
        "contentMode", "scaleOptions", "position", "interpolationQuality", "background", "format", "tenant",
        "priority", "tolerance", "preset", "chromaSubsampling", "profile",
    ]
    /// Fields whose value is parsed as a number, Boolean or JSON if possible, and is a string otherwise.
    static let values: Set = [
        "source", "width", "height", "screenScale", "cropRect", "trim", "gravity", "sizeForDisplay", "sizer", "upscale",
        "linearLight", "before", "processors", "quality", "lossless", "effort", "progressive", "stripMetadata",
        "keepProfile", "page", "frames", "maximumBytes", "allowResize", "nearLossless", "bitDepth", "quantize",
        "maxAge", "cache", "tags", "fallback",
    ]
    /// The parameters of a request for facts.
    static let facts = texts.intersection(["tenant", "priority", "tolerance"])
        .union(["source", "page", "maxAge", "cache", "tags"]).union(findings)
    private static let findings = Set(AnalysisKind.allCases.map(\.rawValue))
    /// Parameters of signed URLs, which do not describe the image (``URLSigner``).
    static let others: Set = ["signature", "expires", "keyId"]

    /// - Parameters:
    ///   - preset: The preset in the path of the URL; nil if there is none.
    ///   - isInfo: True if the job reports facts about the source instead of rendering an image.
    /// - Throws: ``Problem`` that names the invalid parameter.
    init(_ items: [HTTPServer.QueryItem], preset: String? = nil, isInfo: Bool = false) throws(Problem) {
        var (draft, wait, seen): (JobBuilder, WaitParameter?, Set<String>) = (JobBuilder(), nil, [])
        if let preset {
            draft.set("preset", preset)
            seen.insert("preset")
        }
        for item in items {
            guard seen.insert(item.name).inserted else { throw Problem(.badRequest, "\(item.name) is given twice") }
            switch item.name {
            case "wait": wait = try WaitParameter(item.value)
            case _ where Self.others.contains(item.name): continue
            case "location" where isInfo: draft.set("info", "location", Self.json(item))
            case _ where isInfo && !Self.facts.contains(item.name):
                throw Problem(
                    .badRequest,
                    "unknown parameter \(item.name); expected wait, location or one of "
                        + Self.facts.sorted().joined(separator: ", "))
            case _ where isInfo && Self.findings.contains(item.name): draft[item.name] = Self.json(item)
            case _ where Self.texts.contains(item.name): draft.set(item.name, item.value)
            case _ where Self.values.contains(item.name): draft[item.name] = Self.json(item)
            default:
                throw Problem(
                    .badRequest, "unknown parameter \(item.name); parameters have the names of job fields")
            }
        }
        guard seen.contains("source") else { throw Problem(.badRequest, "missing parameter source") }
        if isInfo {
            if draft["info"] == nil { draft.set("info", true) }
            // The facts about another picture would be misleading.
            draft.set("fallback", false)
        }
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
        // A source that starts like a number is still a string.
        let isText = item.name == "source" && !item.value.hasPrefix("{")
        let bytes = Array(item.value.utf8)
        // A value that is not JSON is an unquoted string.
        if !isText, !bytes.isEmpty, (try? JSON.parse(bytes, maximumSize: bytes.count)) != nil { return bytes }
        return item.value.json
    }

    private static func object(_ names: [String], _ numbers: [Double?], unit: String? = nil) -> [UInt8]? {
        var object = JobBuilder()
        for (name, number) in zip(names, numbers) {
            guard let number, number.isFinite else { return nil }
            object.set(name, number)
        }
        if let unit { object.set("unit", unit) }
        return object.json
    }
}

/// The media types that a client accepts (`Accept`, RFC 9110, 12.5.1). A pure value.
struct AcceptHeader: Hashable {
    private struct Range: Hashable {
        let type: Substring
        let subtype: Substring
        let quality: Double
    }

    /// The accepted ranges; nil without the header, which accepts everything.
    private let ranges: [Range]?

    /// - Parameter header: the value of `Accept`, or nil without one. Invalid media ranges are ignored.
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

    /// True if the header names this format explicitly. Wildcards do not count, because such clients may not support
    /// it.
    func names(_ format: ImageFormat) -> Bool {
        (ranges ?? []).contains { "\($0.type)/\($0.subtype)" == format.mediaType && $0.quality > 0 }
    }

    /// True if the client accepts any image format.
    var takesImages: Bool {
        guard let ranges, !ranges.isEmpty else { return true }
        return ranges.contains { ($0.type == "image" || $0.type == "*") && $0.quality > 0 }
    }

    /// True if the client asks for images explicitly, as browsers do for `<img>`. Errors are then reported as a
    /// placeholder image.
    var prefersImages: Bool { (ranges ?? []).contains { $0.type == "image" && $0.quality > 0 } }
}
