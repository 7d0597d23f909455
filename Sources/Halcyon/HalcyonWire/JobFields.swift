import HalcyonModel
import JSON

/// The fields of a job message as they come, each checked for itself; ``job(defaultID:)`` checks them against each other.
struct JobFields {
    var id: String?
    var source: String?
    var width: Double?
    var height: Double?
    var screenScale = 1.0
    var contentMode = ContentMode.scaleAspectFill
    var scaleOptions = ScaleOptions.fitLeavesExcessAndFillCropsExcess
    var cropRect = UnitRect.whole
    var sizeForDisplay = true
    var sizer: Sizer?
    var interpolationQuality = InterpolationQuality.default
    var output = OutputOptions()
    var maxAge = 0.0
    var delivery = Job.Delivery.reference
    var deadline: Job.Deadline?
    var echo = Job.Echo()
    var unknown: [String] = []

    /// Pixels of the longest side that any of the formats can have.
    static let longestSide = 65_535.0

    mutating func take(_ name: JSONName, _ value: JSONElement) throws(JSONError) {
        switch name {
        case "id": id = try Self.id(value)
        case "source": source = try Self.source(value)
        case "width": width = try value.points()
        case "height": height = try value.points()
        case "screenScale": screenScale = CanonicalNumber.rounded(try value.double(in: 1...4))
        case "contentMode": contentMode = try value.choice(of: ContentMode.allCases, ContentMode.init(name:))
        case "scaleOptions": scaleOptions = try value.choice(of: ScaleOptions.allCases)
        case "cropRect": cropRect = try UnitRect(value)
        case "sizeForDisplay": sizeForDisplay = try value.bool()
        case "sizer": sizer = try Sizer(value)
        case "interpolationQuality": interpolationQuality = try value.choice(of: InterpolationQuality.allCases)
        case "format": output.format = try OutputOptions.format(value)
        case "quality": output.quality = Int(try value.integer(in: 1...100))
        case "lossless": output.lossless = try value.bool()
        case "effort": output.effort = Int(try value.integer(in: 0...9))
        case "progressive": output.progressive = try value.bool()
        case "maxAge": maxAge = try value.double()
        case "delivery": delivery = try Self.delivery(value)
        case "deadline": deadline = try Job.Deadline(value)
        case "metadata": echo.metadata = try Self.echoed(value)
        case "placeholder": echo.placeholder = try Self.echoed(value)
        case "altText": echo.altText = try Self.echoed(value)
        // The lane is the topic; the field is for who submits by HTTP or command line.
        case "priority": _ = try value.choice(of: Lane.allCases)
        default: if try !LaterFields.takes(name, value) { unknown.append("\(name)") }
        }
    }

    func job(defaultID: String) throws(Failure) -> Job {
        guard let source else { throw .invalidField("source", "is missing: say what to load") }
        return Job(
            id: id ?? defaultID, source: try Source(source),
            variant: Variant(sizing: try sizing(), interpolationQuality: interpolationQuality, output: output),
            maxAge: maxAge, delivery: delivery, deadline: deadline, echo: echo)
    }

    private func sizing() throws(Failure) -> Sizing {
        if sizer != nil, width != nil || height != nil {
            throw .invalidField("sizer", "stands instead of width and height, not beside them")
        }
        let goal: Sizing.Goal =
            switch (sizer, width, height) {
            case _ where !sizeForDisplay: .original
            case (let sizer?, _, _): .sizer(sizer)
            case (nil, let width?, let height?):
                .display(Display(width: width, height: height, contentMode: contentMode, scaleOptions: scaleOptions))
            case (nil, let width?, nil): .sizer(.aspectScaleDownByWidth(pixels(width)))
            case (nil, nil, let height?): .sizer(.aspectScaleDownByHeight(pixels(height)))
            case (nil, nil, nil): .sizer(.natural)
            }
        for (name, side) in [("width", width), ("height", height)] {
            if let side, pixels(side) > Self.longestSide {
                throw .invalidField(name, "makes more than \(Int(Self.longestSide)) pixels")
            }
        }
        return Sizing(goal: goal, cropRect: cropRect, screenScale: screenScale)
    }

    /// Output pixels = round(points) × scale.
    private func pixels(_ points: Double) -> Double {
        CanonicalNumber.rounded(max(1, points.rounded(.toNearestOrAwayFromZero)) * screenScale)
    }

    static func id(_ value: JSONElement) throws(JSONError) -> String {
        let id = try value.string()
        // No more bytes than that are no more characters, and bytes are counted at once.
        guard !id.isEmpty, id.utf8.count <= 128 || id.unicodeScalars.count <= 128 else {
            throw JSONError(.invalid, "expected 1 to 128 characters")
        }
        return id
    }

    static func source(_ value: JSONElement) throws(JSONError) -> String {
        guard value.kind != .object else {
            throw JSONError(.invalid, "sources as objects are not supported by this version; give a URL")
        }
        return try value.string()
    }

    private static func delivery(_ value: JSONElement) throws(JSONError) -> Job.Delivery {
        guard value.kind != .object else {
            throw JSONError(.invalid, "{put: URL} is not supported by this version; use reference or inline")
        }
        return try value.choice(of: Job.Delivery.allCases)
    }

    static func echoed(_ value: JSONElement) throws(JSONError) -> [UInt8] {
        let bytes = value.bytes
        guard bytes.count <= Job.Echo.longest else {
            throw JSONError(.invalid, "\(bytes.count) bytes, and at most \(Job.Echo.longest) are taken")
        }
        return bytes
    }
}

extension Failure {
    fileprivate static func invalidField(_ name: String, _ reason: String) -> Failure {
        Failure(.invalidJob, "\(name): \(reason)")
    }
}
