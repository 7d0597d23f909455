import Testing

@testable import HalcyonGateway

/// Parsing of the parameter `wait`.
struct WaitParameterTests {
    @Test(arguments: [
        ("0", 0.0), ("-0", 0), ("0.25", 0.25), ("5", 5), ("2e0", 2), ("30", 10), ("1e300", 10), ("1e999", 10),
        ("99999999999999999999999999999999999999999999999999", 10),
    ])
    func capsTheWaitAtTheMaximum(_ text: String, _ seconds: Double) throws {
        #expect(try WaitParameter(text).duration(upTo: .seconds(10)) == .seconds(seconds))
    }

    @Test(arguments: [
        "", "x", "-1", "-1e300", "inf", "infinity", "nan", "0x10", "0x1p900", " 1", "1 ", "1,5", "١", "e",
    ])
    func rejectsInvalidNumbers(_ text: String) throws {
        let problem = try #require(throws: Problem.self) { _ = try WaitParameter(text) }
        #expect(problem.kind == .badRequest)
    }
}
