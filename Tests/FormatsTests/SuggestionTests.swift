import Formats
import Testing

@Suite struct SuggestionTests {
    static let commands = [
        "worker", "gateway", "submit", "get", "key", "events", "cancel", "purge", "render", "doctor",
    ]

    @Test(arguments: [
        ("wroker", "worker"), ("submitt", "submit"), ("gatway", "gateway"), ("EVENTS", "events"), ("event", "events"),
        ("gte", "get"), ("docter", "doctor"), ("kay", "key"),
    ]) func suggestsSimilarWords(word: String, meant: String) {
        #expect(suggestion(for: word, among: Self.commands) == meant)
    }

    @Test(arguments: ["", "x", "frobnicate", "wxyz", "workerworker"]) func suggestsNothingWithoutSimilarWords(
        word: String
    ) {
        #expect(suggestion(for: word, among: Self.commands) == nil)
    }

    @Test func prefersTheNearestThenTheFirst() {
        #expect(
            suggestion(for: "kafka.broker", among: ["kafka.brake", "kafka.brokers", "kafka.broke"]) == "kafka.brokers")
        #expect(suggestion(for: "kafka", among: []) == nil)
    }
}
