import HalcyonImaging
import HalcyonModel
import HalcyonWire

extension JobReader {
    /// The same reader, which takes jobs that name these processors and sizers with parameters that they can follow.
    public func knowing(_ extensions: Extensions) -> JobReader {
        var reader = self
        reader.customProcessors = extensions.processorNames
        reader.customSizers = extensions.sizerNames
        reader.checkCustom = { variant throws(Failure) in try extensions.validate(variant) }
        return reader
    }
}
