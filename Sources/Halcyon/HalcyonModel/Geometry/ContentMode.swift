/// The placement of an image in its display rectangle, with the names of UIKit's `UIView.ContentMode`.
public enum ContentMode: String, CaseIterable, Codable, Sendable {
    /// Stretches both sides to the display's.
    case scaleToFill
    /// Fits the whole image inside the display. The remaining area stays transparent.
    case scaleAspectFit
    /// Fills the display and crops the excess evenly.
    case scaleAspectFill
    /// The same as ``scaleToFill`` for images. In UIKit it redraws the view.
    case redraw
    /// Centers the unscaled image. The following modes place it at the side or corner that they name.
    case center
    case top, bottom, left, right, topLeft, topRight, bottomLeft, bottomRight

    /// Creates the mode with this name, or with the CSS `object-fit` value `fill`, `contain` or `cover`.
    public init?(name: String) {
        switch name {
        case "fill": self = .scaleToFill
        case "contain": self = .scaleAspectFit
        case "cover": self = .scaleAspectFill
        default: self.init(rawValue: name)
        }
    }

    /// The nine modes that do not scale the image.
    public static let unscaled = allCases.filter { $0.alignment != nil }

    /// The alignment of an unscaled image along one axis of the display.
    enum Alignment { case leading, middle, trailing }

    /// The horizontal and vertical alignment; nil for the modes that scale.
    var alignment: (x: Alignment, y: Alignment)? {
        switch self {
        case .scaleToFill, .scaleAspectFit, .scaleAspectFill, .redraw: nil
        case .center: (.middle, .middle)
        case .top: (.middle, .leading)
        case .bottom: (.middle, .trailing)
        case .left: (.leading, .middle)
        case .right: (.trailing, .middle)
        case .topLeft: (.leading, .leading)
        case .topRight: (.trailing, .leading)
        case .bottomLeft: (.leading, .trailing)
        case .bottomRight: (.trailing, .trailing)
        }
    }
}

/// The treatment of excess if aspect ratios differ, as Nimbus' `NINetworkImageViewScaleOptions`.
public enum ScaleOptions: String, CaseIterable, Codable, Sendable {
    /// Fitting leaves transparent excess and filling crops. The output has the display's size.
    case fitLeavesExcessAndFillCropsExcess
    /// Fitting shrinks the display to the image's aspect ratio.
    case fitCropsExcess
    /// Filling grows the display to the image's aspect ratio.
    case fillLeavesExcess
    /// Fitting shrinks and filling grows the display to the image's aspect ratio.
    case fitCropsExcessAndFillLeavesExcess

    /// True if `scaleAspectFit` shrinks the display.
    public var fitCrops: Bool { self == .fitCropsExcess || self == .fitCropsExcessAndFillLeavesExcess }
    /// True if `scaleAspectFill` grows the display.
    public var fillLeaves: Bool { self == .fillLeavesExcess || self == .fitCropsExcessAndFillLeavesExcess }
}

/// The part of the image that `scaleAspectFill` retains when it crops.
public enum Gravity: Hashable, Codable, Sendable {
    /// The center, as in UIKit.
    case center
    /// The part that attracts attention: edges, skin and saturated colors (libvips' `smartcrop`).
    case attention
    /// The part with the highest entropy.
    case entropy
    /// The part around this point, as far as the edges allow.
    case focalPoint(UnitPoint)
    /// The part that contains what a detector finds.
    indirect case detected(DetectedGravity)

    /// True if the part depends on the pixels. A detection is resolved before pixels are decoded for the output.
    public var needsPixels: Bool { self == .attention || self == .entropy }
}

/// The things that a detector can find.
public enum DetectionKind: String, CaseIterable, Codable, Sendable {
    /// Faces of people.
    case faces
    /// All things that the detector knows.
    case objects
}

/// A gravity toward what a detector finds.
public struct DetectedGravity: Hashable, Codable, Sendable {
    /// The things to find.
    public var kind: DetectionKind
    /// The gravity if nothing is found or there is no detector for this kind; not another detection.
    public var fallback: Gravity
    /// The minimum confidence of a detection, 0 to 1.
    public var confidence: Double

    /// Creates a gravity.
    public init(_ kind: DetectionKind, fallback: Gravity = .attention, confidence: Double = 0.5) {
        self.kind = kind
        self.fallback = fallback
        self.confidence = confidence
    }
}

/// A rectangle around a detected thing, in fractions of the picture from the top left corner.
public struct DetectedBox: Hashable, Codable, Sendable {
    /// The distance of the left side from that of the picture. May be below 0 where a part is considered.
    public var x: Double
    /// The distance of the upper side from that of the picture.
    public var y: Double
    /// The width, above 0.
    public var width: Double
    /// The height, above 0.
    public var height: Double
    /// The confidence of the detector, 0 to 1.
    public var confidence: Double

    /// Creates a box.
    public init(x: Double, y: Double, width: Double, height: Double, confidence: Double = 1) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
        self.confidence = confidence
    }

    /// The center.
    public var center: UnitPoint { UnitPoint(x: x + width / 2, y: y + height / 2) }

    /// Returns the box in fractions of another picture, to which a part of this picture was scaled.
    /// - Parameters:
    ///   - plan: The part and its place in the other picture.
    ///   - source: The size of this picture.
    public func placed(by plan: SizingPlan, of source: PixelSize) -> DetectedBox {
        func fraction(_ start: Double, _ length: Int, _ from: Int, _ span: Int, _ to: Int, _ extent: Int, _ all: Int)
            -> Double
        { (Double(to) + (start * Double(length) - Double(from)) * Double(extent) / Double(span)) / Double(all) }
        let (part, place, canvas) = (plan.sourceRect, plan.destRect, plan.outputSize)
        func across(_ x: Double) -> Double {
            fraction(x, source.width, part.x, part.width, place.x, place.width, canvas.width)
        }
        func down(_ y: Double) -> Double {
            fraction(y, source.height, part.y, part.height, place.y, place.height, canvas.height)
        }
        return DetectedBox(
            x: across(x), y: down(y), width: across(x + width) - across(x), height: down(y + height) - down(y),
            confidence: confidence)
    }

    /// Returns the pixels that the box touches in a picture of `size`, grown to each side by `margin` as a share of its
    /// longer side; nil if it lies outside.
    public func pixels(in size: PixelSize, margin: Double = 0) -> PixelRect? {
        let (wide, high) = (width * Double(size.width), height * Double(size.height))
        let more = max(wide, high) * margin
        func span(_ start: Double, _ length: Double, _ whole: Int) -> Range<Int>? {
            let (first, last) = (start * Double(whole) - more, (start + length) * Double(whole) + more)
            guard first < Double(whole), last > 0 else { return nil }
            // A pixel position that was converted to a fraction of the side is recovered.
            let lower = Int(min(max(0, (first + 0.0001).rounded(.down)), Double(whole - 1)))
            let upper = Int(min((last - 0.0001).rounded(.up), Double(whole)))
            return lower..<max(upper, lower + 1)
        }
        guard let across = span(x, width, size.width), let down = span(y, height, size.height) else { return nil }
        return PixelRect(x: across.lowerBound, y: down.lowerBound, width: across.count, height: down.count)
    }
}

/// A face in a result.
public struct DetectedFace: Hashable, Codable, Sendable {
    /// The rectangle around the face in pixels of the result, as far as it is visible.
    public var place: PixelRect
    /// The confidence of the detector, 0 to 1, rounded to four decimals.
    public var confidence: Double

    /// Creates a face.
    public init(_ place: PixelRect, confidence: Double) {
        self.place = place
        self.confidence = confidence
    }

    /// Returns the boxes whose centers are in a picture of `size`, as faces of it, the most confident first.
    public static func visible(_ boxes: [DetectedBox], in size: PixelSize) -> [DetectedFace] {
        boxes.filter { (0...1).contains($0.center.x) && (0...1).contains($0.center.y) }
            .sorted { $0.confidence > $1.confidence }
            .compactMap { box in
                box.pixels(in: size).map {
                    DetectedFace($0, confidence: (box.confidence * 10_000).rounded() / 10_000)
                }
            }
    }
}

extension Sizing {
    /// Returns the sizing whose gravity is the point that detections select, or the fallback if there are none.
    ///
    /// Along each axis, the retained part contains as many detections as possible, weighted by their area and
    /// confidence. They are centered in it, as far as the edges of the picture allow.
    /// - Parameters:
    ///   - boxes: The detections of the kind of ``gravity``, in fractions of the upright source.
    ///   - source: The size of the upright source after the processors before sizing, which retain positions. It is not
    ///     used if there are no detections.
    /// - Throws: ``JobError`` `invalid_job` if there are detections and the crop lies outside the source.
    public func resolved(_ boxes: [DetectedBox], of source: PixelSize) throws(JobError) -> Sizing {
        guard case .detected(let wanted) = gravity else { return self }
        var sizing = self
        sizing.gravity = wanted.fallback
        guard isCutByGravity, !boxes.isEmpty else { return sizing }
        let crop = try crop(of: source)
        let part = SizingPlan(
            sourceRect: crop, outputSize: crop.size, destRect: PixelRect(crop.size))
        let found = boxes.filter { $0.confidence >= wanted.confidence }.map { $0.placed(by: part, of: source) }
            .filter { (0...1).contains($0.center.x) && (0...1).contains($0.center.y) }
        guard !found.isEmpty else { return sizing }
        let window = try sizing.plan(for: source).sourceRect
        let x = Self.middle(
            of: found.map { ($0.x, $0.x + $0.width, $0.weight) }, window: Double(window.width) / Double(crop.width))
        let y = Self.middle(
            of: found.map { ($0.y, $0.y + $0.height, $0.weight) }, window: Double(window.height) / Double(crop.height))
        sizing.gravity = .focalPoint(
            UnitPoint(
                x: (Double(crop.x) + x * Double(crop.width)) / Double(source.width),
                y: (Double(crop.y) + y * Double(crop.height)) / Double(source.height)))
        return sizing
    }

    /// Returns the middle of a window of a given length inside 0…1.
    private static func middle(of spans: [(start: Double, end: Double, weight: Double)], window: Double) -> Double {
        func visible(_ span: (start: Double, end: Double, weight: Double), from start: Double) -> Double {
            let both = min(span.end, start + window) - max(span.start, start)
            return span.weight * max(0, both) / (span.end - span.start)
        }
        // The best window begins or ends with a detection.
        let starts = spans.flatMap { [$0.start, $0.end - window] }.map { min(max(0, $0), max(0, 1 - window)) }
        let scored = starts.map { start in (start, spans.reduce(0) { $0 + visible($1, from: start) }) }
        let best = scored.max { $0.1 < $1.1 }?.0 ?? 0
        // Detections that are hardly visible do not move it.
        let inside = spans.filter { visible($0, from: best) > $0.weight / 2 }
        let shown = inside.isEmpty ? spans.max { $0.weight < $1.weight }.map { [$0] } ?? [] : inside
        let (start, end) = (shown.map(\.start).min() ?? 0, shown.map(\.end).max() ?? 1)
        return min(max(0, (start + end) / 2), 1)
    }
}

extension DetectedBox {
    fileprivate var weight: Double { width * height * confidence }
}

/// A point of an image in fractions of its sides, from the top left corner, each 0 to 1.
public struct UnitPoint: Hashable, Codable, Sendable {
    /// The distance from the left side.
    public var x: Double
    /// The distance from the top.
    public var y: Double

    /// Creates a point from fractions of the image's width and height.
    public init(x: Double, y: Double) {
        self.x = x
        self.y = y
    }

    /// The center of the image.
    public static let center = UnitPoint(x: 0.5, y: 0.5)
}
