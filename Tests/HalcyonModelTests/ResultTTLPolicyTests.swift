import HalcyonModel
import Testing

@Suite struct ResultTTLPolicyTests {
    static let hour = ResultTTL.seconds(3600)

    @Test(arguments: [
        (60.0, "60"), (0.5, "0.5"), (0, "0"), (-0.0, "0"), (-1, "-1"), (-0.001, "-1"), (1e-9, "0.000001"),
        (1e300, "2147483648"), (33.333_333_3, "33.333333"),
    ])
    func namesPoliciesByMaxAge(maxAge: Double, name: String) {
        #expect(ResultTTLPolicy(maxAge: maxAge).name == name)
    }

    @Test func jobMaxAgeIgnoresAgeAndJitter() {
        let rule = ResultTTLPolicy(maxAge: 60)
        #expect(rule.seconds(of: .seconds(60), age: 1000, standard: 5, cut: 0.5) == 60)
    }

    @Test(
        arguments: [
            (hour, 0.0, 0.0, 3600.0), (hour, 600, 0, 3000), (hour, -5, 0, 3600), (hour, 600, 0.5, 1500),
            (.standard, 0, 0, 100), (.standard, 40, 0, 60), (.standard, 40, 0.25, 45),
            (hour, 3600, 0, nil), (hour, 4000, 0, nil), (.standard, 100, 0, nil), (.notStored, 0, 0, nil),
        ] as [(ResultTTL, Double, Double, Double?)])
    func responseTTLIsReducedByAgeAndJitter(lifetime: ResultTTL, age: Double, cut: Double, expected: Double?) {
        #expect(ResultTTLPolicy(maxAge: 0).seconds(of: lifetime, age: age, standard: 100, cut: cut) == expected)
    }

    @Test func negativeMaxAgeStoresNothing() {
        for lifetime in [Self.hour, .standard, .notStored] {
            #expect(ResultTTLPolicy(maxAge: -1).seconds(of: lifetime, age: 0, standard: 100, cut: 0) == nil)
        }
    }
}
