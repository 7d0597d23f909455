import Foundation
import Hashing
import TestSupport
import Testing

@Suite struct Base64Tests {
    @Test func encodesLikeFoundation() {
        var numbers = SeededNumbers(seed: 5)
        for count in [0, 1, 2, 3, 4, 255, 100_000] {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &numbers) }
            #expect(Base64.encode(bytes) == Data(bytes).base64EncodedString())
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        }
    }

    @Test(arguments: ["A", "AA", "AAA", "AA=A", "=AAA", "A===", "====", "AA A", " AAA", "AAA\n", "AA-_", "AÄA"])
    func rejectsInvalidBase64(text: String) {
        #expect(Base64.decode(text) == nil)
    }
}
