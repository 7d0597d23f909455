import HalcyonModel
import Vips

/// The custom processors and sizers of the host program, by name.
public struct Extensions: Sendable {
    private let processors: [String: any ImageProcessor]
    private let sizers: [String: any ImageSizer]

    /// Creates a registry without extensions.
    public init() {
        processors = [:]
        sizers = [:]
    }

    /// Creates a registry of extensions.
    /// - Throws: ``ExtensionError`` for a name that is malformed, registered twice, or built in.
    public init(
        processors: [any ImageProcessor] = [], sizers: [any ImageSizer] = []
    ) throws(ExtensionError) {
        self.processors = try Self.byName(processors, \.name, "processor", taken: Processor.names)
        self.sizers = try Self.byName(sizers, \.name, "sizer", taken: Sizer.names)
    }

    /// The names that jobs may use in `processors`.
    public var processorNames: Set<String> { Set(processors.keys) }

    /// The names that jobs may use as `sizer`.
    public var sizerNames: Set<String> { Set(sizers.keys) }

    /// Validates what the parameters of an output require of the worker: the extensions and fonts that it uses.
    ///
    /// - Throws: ``JobError`` `invalid_job` that begins with the name of the extension or of the processor, also if the
    ///   name of an extension or a font is unknown.
    public func validate(_ variant: Variant) throws(JobError) {
        if case .custom(let rule) = variant.sizing.goal {
            let sizer = try sizer(rule)
            try Self.naming(rule) { () throws(JobError) in try sizer.validate(rule.parameters) }
        }
        for step in variant.allProcessors {
            switch step {
            case .custom(let rule):
                let processor = try processor(rule)
                try Self.naming(rule) { () throws(JobError) in try processor.validate(rule.parameters) }
            case .text(let text) where Fonts.family(named: text.font) == nil: throw JobError(noFont: text.font)
            default: break
            }
        }
    }

    /// Returns the plan of a registered sizer for an image of `size`, for use by ``Sizing/plan(for:focus:custom:)``.
    ///
    /// - Throws: ``JobError``: an error of the sizer; `invalid_job` if the name is unknown; `internal` for a plan that
    ///   exceeds the image or the output.
    public func plan(_ rule: CustomExtension, for size: PixelSize) throws(JobError) -> SizingPlan {
        let sizer = try sizer(rule)
        let plan = try Self.naming(rule) { () throws(JobError) in
            try sizer.plan(for: size, parameters: rule.parameters)
        }
        guard plan.sourceRect.lies(within: size) else {
            throw JobError(
                .internal,
                "the sizer \(rule.name) selects \(plan.sourceRect.text) in an image of "
                    + "\(size.width)×\(size.height) pixels"
            )
        }
        let output = plan.outputSize
        guard output.width > 0, output.height > 0, plan.destRect.lies(within: output) else {
            throw JobError(
                .internal,
                "the sizer \(rule.name) places \(plan.destRect.text) in an output of "
                    + "\(output.width)×\(output.height) pixels"
            )
        }
        return plan
    }

    /// Returns true if the processor can make opaque pixels transparent.
    public func makesTransparency(_ processor: Processor) -> Bool {
        guard case .custom(let rule) = processor else { return processor.makesTransparency }
        return processors[rule.name]?.makesTransparency ?? false
    }

    /// Returns the size of an image after a built-in or custom processor.
    ///
    /// - Throws: ``JobError`` `invalid_job` if the name is unknown.
    public func size(of size: PixelSize, after processor: Processor) throws(JobError) -> PixelSize {
        guard case .custom(let rule) = processor else { return processor.size(of: size) }
        return try self.processor(rule).size(of: size, parameters: rule.parameters)
    }

    /// Returns the size of an image after several processors.
    ///
    /// - Throws: ``JobError`` `invalid_job` if a name is unknown.
    func size(of size: PixelSize, after processors: [Processor]) throws(JobError) -> PixelSize {
        var size = size
        for processor in processors { size = try self.size(of: size, after: processor) }
        return size
    }

    /// Runs a registered processor and validates its result.
    func process(_ image: Image, by rule: CustomExtension) throws -> Image {
        let processor = try processor(rule)
        let expected = processor.size(of: image.size, parameters: rule.parameters)
        let result: Image
        do {
            result = try processor.process(image, parameters: rule.parameters)
        } catch let error as JobError {
            throw error
        } catch let error as VipsError {
            throw error
        } catch {
            throw JobError(.internal, "the processor \(rule.name) failed: \(error)", cause: error)
        }
        guard result.size == expected else {
            throw JobError(
                .internal,
                "the processor \(rule.name) made \(result.width)×\(result.height) pixels instead of the announced "
                    + "\(expected.width)×\(expected.height)")
        }
        let isGrey = result.interpretation == .grey && (1...2).contains(result.bands)
        let isColor = result.interpretation == .sRGB && (3...4).contains(result.bands)
        guard result.sampleFormat == .uint8, isGrey || isColor else {
            throw JobError(.internal, "the processor \(rule.name) must return 8-bit grey or sRGB")
        }
        return result
    }

    private func processor(_ rule: CustomExtension) throws(JobError) -> any ImageProcessor {
        guard let processor = processors[rule.name] else {
            throw JobError(.invalidJob, "processors: nothing is registered as \(rule.name)")
        }
        return processor
    }

    private func sizer(_ rule: CustomExtension) throws(JobError) -> any ImageSizer {
        guard let sizer = sizers[rule.name] else {
            throw JobError(.invalidJob, "sizer: nothing is registered as \(rule.name)")
        }
        return sizer
    }

    /// Adds the name of the extension to its errors.
    private static func naming<Result>(
        _ rule: CustomExtension, _ body: () throws(JobError) -> Result
    ) throws(JobError) -> Result {
        do throws(JobError) {
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

/// An error in the registration of an extension by the host program.
public enum ExtensionError: Error, Hashable, CustomStringConvertible {
    /// The name is empty, too long, or contains characters that are not allowed.
    case malformed(kind: String, name: String)
    /// The name is that of a built-in processor or sizer.
    case builtIn(kind: String, name: String)
    /// Two extensions have the same name.
    case doubled(kind: String, name: String)

    /// A human-readable description.
    public var description: String {
        switch self {
        case .malformed(let kind, let name):
            "the \(kind) \"\(name)\" needs a name of 1 to 64 letters, digits, \".\", \"_\" and \"-\""
        case .builtIn(let kind, let name): "the \(kind) name \(name) is reserved for a built-in \(kind)"
        case .doubled(let kind, let name): "the \(kind) \(name) is registered twice"
        }
    }
}
