import HalcyonModel
import Vips

/// What the host program adds to Halcyon, by name.
public struct Extensions: Sendable {
    private let processors: [String: any ImageProcessor]
    private let sizers: [String: any ImageSizer]

    /// Nothing.
    public init() {
        processors = [:]
        sizers = [:]
    }

    /// - Throws: ``ExtensionError`` for a name that is malformed, stands twice, or is Halcyon's own.
    public init(
        processors: [any ImageProcessor] = [], sizers: [any ImageSizer] = []
    ) throws(ExtensionError) {
        self.processors = try Self.byName(processors, \.name, "processor", taken: Processor.names)
        self.sizers = try Self.byName(sizers, \.name, "sizer", taken: Sizer.names)
    }

    /// What jobs may name among `processors`.
    public var processorNames: Set<String> { Set(processors.keys) }

    /// What jobs may name as `sizer`.
    public var sizerNames: Set<String> { Set(sizers.keys) }

    /// Asks what was registered whether it can follow the parameters of an output.
    ///
    /// - Throws: ``Failure`` `invalid_job` that begins with the name, also where nothing is registered by it.
    public func validate(_ variant: Variant) throws(Failure) {
        if case .custom(let rule) = variant.sizing.goal {
            let sizer = try sizer(rule)
            try Self.naming(rule) { () throws(Failure) in try sizer.validate(rule.parameters) }
        }
        for case .custom(let rule) in variant.processors {
            let processor = try processor(rule)
            try Self.naming(rule) { () throws(Failure) in try processor.validate(rule.parameters) }
        }
    }

    /// What a registered sizer makes of a picture of `size`; to be handed to ``Sizing/plan(for:focus:custom:)``.
    ///
    /// - Throws: ``Failure``: what the sizer throws; `invalid_job` where nothing is registered; `internal` for a plan that
    ///   leaves the picture or the output.
    public func plan(_ rule: CustomRule, for size: PixelSize) throws(Failure) -> SizingPlan {
        let sizer = try sizer(rule)
        let plan = try Self.naming(rule) { () throws(Failure) in
            try sizer.plan(for: size, parameters: rule.parameters)
        }
        guard plan.sourceRect.lies(within: size) else {
            throw Failure(
                .internal,
                "the sizer \(rule.name) takes \(plan.sourceRect.text) of a picture of \(size.width)×\(size.height) pixels"
            )
        }
        let output = plan.outputSize
        guard output.width > 0, output.height > 0, plan.destRect.lies(within: output) else {
            throw Failure(
                .internal,
                "the sizer \(rule.name) places \(plan.destRect.text) on an output of \(output.width)×\(output.height) pixels"
            )
        }
        return plan
    }

    /// Whether the processor makes pixels transparent that were not.
    public func makesTransparency(_ processor: Processor) -> Bool {
        guard case .custom(let rule) = processor else { return processor.makesTransparency }
        return processors[rule.name]?.makesTransparency ?? false
    }

    /// The size of a picture behind a processor, Halcyon's own or registered.
    ///
    /// - Throws: ``Failure`` `invalid_job` where nothing is registered by its name.
    public func size(of size: PixelSize, after processor: Processor) throws(Failure) -> PixelSize {
        guard case .custom(let rule) = processor else { return processor.size(of: size) }
        return try self.processor(rule).size(of: size, parameters: rule.parameters)
    }

    /// Lets a registered processor have the picture, and looks at what it gives back.
    func process(_ image: Image, by rule: CustomRule) throws -> Image {
        let processor = try processor(rule)
        let expected = processor.size(of: image.size, parameters: rule.parameters)
        let result: Image
        do {
            result = try processor.process(image, parameters: rule.parameters)
        } catch let error as Failure {
            throw error
        } catch let error as VipsError {
            throw error
        } catch {
            throw Failure(.internal, "the processor \(rule.name): \(error)", cause: error)
        }
        guard result.size == expected else {
            throw Failure(
                .internal,
                "the processor \(rule.name) made \(result.width)×\(result.height) pixels where it had announced "
                    + "\(expected.width)×\(expected.height)")
        }
        let isGrey = result.interpretation == .grey && (1...2).contains(result.bands)
        let isColor = result.interpretation == .sRGB && (3...4).contains(result.bands)
        guard result.sampleFormat == .uint8, isGrey || isColor else {
            throw Failure(.internal, "the processor \(rule.name) gave something else than 8-bit grey or sRGB")
        }
        return result
    }

    private func processor(_ rule: CustomRule) throws(Failure) -> any ImageProcessor {
        guard let processor = processors[rule.name] else {
            throw Failure(.invalidJob, "processors: nothing is registered as \(rule.name)")
        }
        return processor
    }

    private func sizer(_ rule: CustomRule) throws(Failure) -> any ImageSizer {
        guard let sizer = sizers[rule.name] else {
            throw Failure(.invalidJob, "sizer: nothing is registered as \(rule.name)")
        }
        return sizer
    }

    /// Puts the name before what was registered says.
    private static func naming<Result>(
        _ rule: CustomRule, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        do throws(Failure) {
            return try body()
        } catch {
            throw error.within(rule.name)
        }
    }

    private static func byName<Extension>(
        _ list: [Extension], _ name: (Extension) -> String, _ kind: String, taken: Set<String>
    ) throws(ExtensionError) -> [String: Extension] {
        var named: [String: Extension] = [:]
        for item in list {
            let name = name(item)
            let isWellFormed = name.utf8.allSatisfy {
                UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 | 0x20 || UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0
                    || [UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-")].contains($0)
            }
            guard (1...64).contains(name.utf8.count), isWellFormed else { throw .malformed(kind: kind, name: name) }
            guard !taken.contains(name) else { throw .builtIn(kind: kind, name: name) }
            guard named.updateValue(item, forKey: name) == nil else { throw .doubled(kind: kind, name: name) }
        }
        return named
    }
}

extension PixelRect {
    fileprivate func lies(within size: PixelSize) -> Bool {
        x >= 0 && y >= 0 && 1...size.width ~= width && 1...size.height ~= height && x <= size.width - width
            && y <= size.height - height
    }

    fileprivate var text: String { "\(width)×\(height) pixels at \(x),\(y)" }
}

/// Why something could not be registered: a mistake in the host program.
public enum ExtensionError: Error, Hashable, CustomStringConvertible {
    /// The name has other characters than jobs may use, or too many, or none.
    case malformed(kind: String, name: String)
    /// Halcyon has one of its own by that name.
    case builtIn(kind: String, name: String)
    /// Two were given by that name.
    case doubled(kind: String, name: String)

    /// For people.
    public var description: String {
        switch self {
        case .malformed(let kind, let name):
            "the \(kind) \"\(name)\" needs a name of 1 to 64 letters, digits, \".\", \"_\" and \"-\""
        case .builtIn(let kind, let name): "\(name) is a \(kind) of Halcyon's own"
        case .doubled(let kind, let name): "the \(kind) \(name) is registered twice"
        }
    }
}
