import Testing

@testable import HalcyonCoordination

@Suite struct LeaseNameTests {
    @Test func keysShareTheHashSlotOfTheProduct() {
        let name = LeaseName(product: "halcyon:{abc}:def")
        #expect(name.lease == "halcyon:{abc}:lease:def")
        #expect(name.waiters == "halcyon:{abc}:waiters:def")
        #expect(name.fences == "halcyon:{abc}:fences")
    }
}
