import Hashing
import Testing

@Suite struct Digest256Tests {
    @Test func roundTripsThroughHexadecimal() throws {
        let digest = SHA256.hash("halcyon")
        let read = try #require(Digest256(digest.description))
        #expect(read == digest)
        #expect(read.bytes == digest.bytes)
        #expect(digest.bytes.count == 32)
        #expect(Digest256(digest.description.prefix(64)) == digest)
    }

    @Test func rejectsInvalidText() {
        let good = SHA256.hash("").description
        for bad in [
            "", String(good.dropLast()), good + "0", good.uppercased(), String(good.dropLast()) + "g",
            String(good.dropLast()) + "é",
        ] {
            #expect(Digest256(bad) == nil)
        }
    }

    @Test func isHashable() {
        let set: Set = [SHA256.hash("a"), SHA256.hash("b"), SHA256.hash("a")]
        #expect(set.count == 2)
        #expect(SHA256.hash("a") != SHA256.hash("b"))
    }
}
