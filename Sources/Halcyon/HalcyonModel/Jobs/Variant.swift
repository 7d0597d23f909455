/// One output of a job: a sizing, steps of processing, and an encoding.
public struct Variant: Hashable, Codable, Sendable {
    /// The geometry.
    public var sizing: Sizing
    /// How pixels are interpolated when the size changes.
    public var interpolationQuality: InterpolationQuality
    /// What is seen where the image does not reach, and behind it in formats without alpha.
    public var background: CSSColor
    /// What is done to the sized picture, in this order.
    public var processors: [Processor]
    /// What damage to the source does no harm; nil for what the renderer's limits say.
    public var tolerance: Tolerance?
    /// The encoding.
    public var output: OutputOptions
    /// What is to be found out about the output besides its size.
    public var findings: Set<Finding>

    /// Takes the values as they are.
    public init(
        sizing: Sizing, interpolationQuality: InterpolationQuality = .default, background: CSSColor = .transparent,
        processors: [Processor] = [], tolerance: Tolerance? = nil, output: OutputOptions = OutputOptions(),
        findings: Set<Finding> = []
    ) {
        self.sizing = sizing
        self.interpolationQuality = interpolationQuality
        self.background = background
        self.processors = processors
        self.tolerance = tolerance
        self.output = output
        self.findings = findings
    }

    /// The pictures beside the job's own that are needed, each once.
    public var assets: [Source] {
        var assets: [Source] = []
        for asset in processors.compactMap(\.asset) where !assets.contains(asset) { assets.append(asset) }
        return assets
    }
}

/// What an event can say of an output's looks, when it is asked to.
public enum Finding: String, CaseIterable, Codable, Sendable {
    /// The BlurHash text (https://blurha.sh), to show before the image is there.
    case blurhash
    /// The colour that most of it has.
    case dominantColor
}

/// Core Graphics' interpolation qualities, by name.
public enum InterpolationQuality: String, CaseIterable, Codable, Sendable {
    /// Nearest neighbour.
    case none
    /// Linear.
    case low
    /// Cubic.
    case medium
    /// Lanczos3.
    case high
    /// Lanczos3.
    case `default`
}
