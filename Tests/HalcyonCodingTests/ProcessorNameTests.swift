import HalcyonModel
import Testing

@testable import HalcyonCoding

@Suite struct ProcessorNameTests {
    @Test func modelAndDecoderKnowTheSameNames() {
        #expect(Set(ProcessorKind.allCases.map(\.rawValue)) == Processor.names)
    }
}
