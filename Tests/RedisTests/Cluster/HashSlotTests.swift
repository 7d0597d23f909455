import Testing

@testable import Redis

@Suite struct HashSlotTests {
    /// Redis Cluster specification, appendix A.
    @Test func matchesCRC16OfTheSpecification() {
        #expect(CRC16.of(Array("123456789".utf8)) == 0x31C3)
        #expect(CRC16.of([]) == 0)
    }

    /// Slots as reported by CLUSTER KEYSLOT.
    @Test(arguments: [
        ("foo", 12182), ("bar", 5061), ("hello", 866), ("somekey", 11058), ("foo{hash_tag}", 2515), ("", 0),
    ])
    func computesSlotsOfKeys(key: String, slot: Int) {
        #expect(HashSlot(of: .string(key)).number == slot)
        #expect(HashSlot(of: .bytes(Array(key.utf8))).number == slot)
    }

    /// Redis Cluster specification, "Hash tags".
    @Test(arguments: [
        ("{user1000}.following", "user1000"), ("{user1000}.followers", "user1000"), ("foo{}{bar}", "foo{}{bar}"),
        ("foo{{bar}}zap", "{bar"), ("foo{bar}{zap}", "bar"), ("foo{bar", "foo{bar"), ("foo}bar{", "foo}bar{"),
        ("a}{b}", "b"),
    ])
    func hashesOnlyTheHashTag(key: String, hashed: String) {
        #expect(HashSlot(of: .string(key)).number == Int(CRC16.of(Array(hashed.utf8))) % HashSlot.count)
    }

    @Test func hashesIntegersAsDigitsAndLimitsSlots() {
        #expect(HashSlot(of: 1234) == HashSlot(of: "1234"))
        #expect(HashSlot(number: 16_384) == nil && HashSlot(number: -1) == nil && HashSlot(number: 16_383) != nil)
    }
}
