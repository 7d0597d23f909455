import Hashing
import Testing

@Suite struct SHA256Tests {
    /// Examples of FIPS 180-4 and of NIST's CAVP.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (String(repeating: "a", count: 1_000_000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    ]) func matchesFIPSAndCAVPExamples(text: String, digest: String) {
        #expect(SHA256.hash(text).description == digest)
        #expect(SHA256.hash(Array(text.utf8)).description == digest)
    }

    @Test func incrementalHashEqualsOneShotHash() {
        let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        for size in [1, 3, 63, 64, 65, 999] {
            var hash = SHA256()
            for start in stride(from: 0, to: bytes.count, by: size) {
                hash.update(Array(bytes[start..<min(start + size, bytes.count)]))
            }
            #expect(hash.finish() == SHA256.hash(bytes))
        }
    }

    @Test func interleavedHashesAreIndependent() {
        var first = SHA256()
        var second = SHA256()
        first.update(Array("a".utf8))
        second.update(Array("x".utf8))
        first.update(Array("bc".utf8))
        #expect(first.finish() == SHA256.hash("abc"))
        #expect(second.finish() == SHA256.hash("x"))
    }

    @Test func abandonedHashHasNoEffect() {
        for _ in 0..<3 {
            var abandoned = SHA256()
            abandoned.update(Array("left over".utf8))
        }
        #expect(SHA256.hash("") == SHA256().finish())
        #expect(SHA256.hash("").description.hasPrefix("e3b0c442"))
    }

    @Test func hashesConcurrently() async {
        await withTaskGroup(of: Bool.self) { group in
            let expected = SHA256.hash("abc")
            for _ in 0..<8 { group.addTask { (0..<1000).allSatisfy { _ in SHA256.hash("abc") == expected } } }
            for await isRight in group { #expect(isRight) }
        }
    }
}
