/// What size a variant gets: a crop of the source, and a rule for the rest.
public struct Sizing: Hashable, Codable, Sendable {
    /// The rule for the size of the output.
    public enum Goal: Hashable, Codable, Sendable {
        /// A display rectangle of width and height.
        case display(Display)
        /// Width or height in points, the other side in proportion; or the natural size.
        case sizer(Sizer)
        /// A sizer that was registered by name.
        case custom(CustomRule)
        /// The (cropped) original size, by `sizeForDisplay: false`.
        case original
    }

    /// The rule.
    public var goal: Goal
    /// The part of the auto-rotated source that is used at all.
    public var cropRect: CropRect
    /// Pixels a point, 1 to 4.
    public var screenScale: Double
    /// Which part `scaleAspectFill` keeps.
    public var gravity: Gravity
    /// Whether the output may show pixels of the source enlarged; nil for what the goal does by itself: a display does, a sizer
    /// does not.
    public var upscale: Bool?

    /// Takes the values as they are.
    public init(
        goal: Goal, cropRect: CropRect = .whole, screenScale: Double = 1, gravity: Gravity = .center,
        upscale: Bool? = nil
    ) {
        self.goal = goal
        self.cropRect = cropRect
        self.screenScale = screenScale
        self.gravity = gravity
        self.upscale = upscale
    }

    /// Whether ``gravity`` has any influence.
    public var isCutByGravity: Bool {
        guard case .display(let display) = goal else { return false }
        return display.contentMode == .scaleAspectFill && !display.scaleOptions.fillLeaves
    }

    /// The part of a source of `source` pixels that is used, after auto-rotation.
    ///
    /// - Throws: ``Failure`` `invalid_job` where that is nothing.
    public func crop(of source: PixelSize) throws(Failure) -> PixelRect {
        cropRect.isEmpty ? PixelRect(source) : try cropRect.pixels(of: source)
    }

    /// The pixels of an output for a source of `source` pixels, after auto-rotation.
    ///
    /// - Parameters:
    ///   - source: its size in pixels.
    ///   - focus: where the pixels say that the eye is drawn, in fractions of the source; nil for what ``gravity`` says without
    ///     them.
    ///   - custom: what a registered sizer makes of the size of the crop; its plan counts from the crop's corner.
    /// - Throws: what `custom` throws; without one, ``Failure`` `invalid_job` for every registered sizer. The same for a crop
    ///   outside the source.
    public func plan(
        for source: PixelSize, focus: UnitPoint? = nil,
        custom: (CustomRule, PixelSize) throws(Failure) -> SizingPlan = { rule, _ throws(Failure) in
            throw Failure(.invalidJob, "sizer: nothing is registered as \(rule.name)")
        }
    ) throws(Failure) -> SizingPlan {
        let crop = try crop(of: source)
        var plan =
            switch goal {
            case .display(let display): place(crop, of: source, on: display, focus)
            case .sizer(let sizer):
                SizingPlan(scaling: crop.size, to: sizer.size(of: crop.size, upscale: upscale ?? false))
            case .custom(let rule): try custom(rule, crop.size)
            case .original: SizingPlan(scaling: crop.size, to: crop.size)
            }
        plan.sourceRect.x += crop.x
        plan.sourceRect.y += crop.y
        return plan
    }

    private func place(
        _ crop: PixelRect, of source: PixelSize, on display: Display, _ focus: UnitPoint?
    ) -> SizingPlan {
        let plan = display.place(crop.size, focus: self.focus(focus, in: crop, of: source))
        guard upscale == false else { return plan.scaled(by: screenScale) }
        // The display shrinks in proportion until no pixel is enlarged.
        let enlarged = max(
            Double(plan.destRect.width) / Double(plan.sourceRect.width),
            Double(plan.destRect.height) / Double(plan.sourceRect.height))
        return plan.scaled(by: min(screenScale, 1 / enlarged))
    }

    /// The point that is kept, from fractions of the source to fractions of the crop.
    private func focus(_ found: UnitPoint?, in crop: PixelRect, of source: PixelSize) -> UnitPoint {
        let point: UnitPoint
        if let found {
            point = found
        } else if case .focalPoint(let given) = gravity {
            point = given
        } else {
            return .center
        }
        return UnitPoint(
            x: (point.x * Double(source.width) - Double(crop.x)) / Double(crop.width),
            y: (point.y * Double(source.height) - Double(crop.y)) / Double(crop.height))
    }
}
