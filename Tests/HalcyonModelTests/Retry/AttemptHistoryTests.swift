import HalcyonModel
import Testing

@Suite struct AttemptHistoryTests {
    @Test func countsAllAttemptsAndKeepsTheLastTen() {
        var history = AttemptHistory(began: 1000)
        #expect(history.count == 0 && history.attempts.isEmpty)
        for number in 1...25 { history.add(JobError(.timeout, "number \(number)"), at: Int64(1000 + number)) }
        #expect(history.count == 25 && history.began == 1000)
        #expect(history.attempts.map(\.message) == (16...25).map { "number \($0)" })
        #expect(history.attempts.last == .init(moment: 1025, code: .timeout, message: "number 25"))
    }

    @Test func truncatesMessagesBetweenCharacters() {
        let message = String(repeating: "é", count: 400)
        let attempt = AttemptHistory.Attempt(moment: 0, code: .internal, message: message)
        #expect(attempt.message == String(repeating: "é", count: 150) + "…")
        #expect(AttemptHistory.Attempt(moment: 0, code: .internal, message: "short").message == "short")
    }

    @Test func keepsTheLastTenOfGivenAttempts() {
        let attempts = (0..<12).map { AttemptHistory.Attempt(moment: $0, code: .timeout, message: "") }
        let history = AttemptHistory(began: 0, count: 3, attempts: attempts)
        #expect(history.count == 12 && history.attempts.first?.moment == 2)
    }
}
