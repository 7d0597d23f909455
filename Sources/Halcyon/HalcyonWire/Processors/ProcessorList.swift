import HalcyonModel
import JSON

/// The processors of an output as they come: lengths in points, until the scale is known.
struct ProcessorList {
    private let element: JSONElement
    /// At one pixel a point.
    private let unscaled: [Processor]

    /// Steps of one output at most.
    static let most = 32

    /// - Parameter reader: knows what the host program registered.
    init(_ element: JSONElement, _ reader: JobReader) throws(JSONError) {
        self.element = element
        unscaled = try Self.read(element, scale: 1, reader)
    }

    /// With lengths in pixels.
    func scaled(by scale: Double, _ reader: JobReader) throws(JSONError) -> [Processor] {
        guard scale != 1, !unscaled.isEmpty else { return unscaled }
        do throws(JSONError) {
            return try Self.read(element, scale: scale, reader)
        } catch {
            throw error.within("processors")
        }
    }

    private static func read(
        _ element: JSONElement, scale: Double, _ reader: JobReader
    ) throws(JSONError) -> [Processor] {
        var processors: [Processor] = []
        try element.forEachElement { element throws(JSONError) in
            guard processors.count < most else { throw .tooMany(most) }
            processors.append(try element.processor(scale: scale, reader))
        }
        return processors
    }
}

extension JSONElement {
    /// A processor: its name, or an object of one member, which is its name with its parameters.
    fileprivate func processor(scale: Double, _ reader: JobReader) throws(JSONError) -> Processor {
        guard kind == .object else {
            let name = try string()
            do throws(JSONError) {
                return try Self.processor(name, nil, scale, reader)
            } catch {
                throw error.within(name)
            }
        }
        var processor: Processor?
        try forEachGiven { name, value throws(JSONError) in
            guard processor == nil else { throw JSONError(.invalid, "is one processor too many in its place") }
            processor = try Self.processor("\(name)", value, scale, reader)
        }
        guard let processor else { throw JSONError(.missing, "names no processor") }
        return processor
    }

    private static func processor(
        _ name: String, _ value: JSONElement?, _ scale: Double, _ reader: JobReader
    ) throws(JSONError) -> Processor {
        if let kind = ProcessorKind(rawValue: name) {
            return try kind.read(try Parameters(value, of: kind, scale: scale, reader))
        }
        guard reader.customProcessors.contains(name) else {
            throw .noRule(
                name, "processor", among: ProcessorKind.allCases.map(\.rawValue) + reader.customProcessors.sorted())
        }
        return .custom(CustomRule(name: name, parameters: try value?.ruleParameters() ?? "{}"))
    }
}
