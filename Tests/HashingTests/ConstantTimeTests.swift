import Hashing
import Testing

@Suite struct ConstantTimeTests {
    @Test func comparesEveryBit() {
        let digest = SHA256.hash("a secret")
        #expect(digest.isSame(inConstantTimeAs: SHA256.hash("a secret")))
        for index in 0..<Digest256.count {
            for bit in 0..<8 {
                var bytes = digest.bytes
                bytes[index] ^= 1 << bit
                let other = bytes.withUnsafeBytes { Digest256($0) }
                #expect(!digest.isSame(inConstantTimeAs: other))
            }
        }
    }
}
