import HalcyonImaging
import HalcyonModel
import HalcyonSources
import HalcyonWire

extension JobReader {
    /// The same reader, which takes jobs that name these processors, sizers and providers of sources with parameters that they
    /// can follow.
    public func knowing(_ extensions: Extensions, _ providers: CustomProviders) -> JobReader {
        var reader = self
        reader.customProcessors = extensions.processorNames
        reader.customSizers = extensions.sizerNames
        reader.checkCustom = { variant throws(Failure) in try extensions.validate(variant) }
        reader.customSources = providers.names
        reader.customSourceKey = { name, reference throws(Failure) in try providers.cacheKey(name, for: reference) }
        return reader
    }
}
