/// How long a request asks to wait: the parameter `wait`, in seconds. A pure value.
struct Wait: Hashable {
    private let seconds: Double

    /// - Parameter text: a decimal number, as JSON writes them: 10, 0.5, 1e3.
    /// - Throws: ``Problem`` of the kind `badRequest` for anything else.
    init(_ text: String) throws(Problem) {
        // Double takes words and hexadecimal digits as well.
        let isDecimal = text.utf8.allSatisfy { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }
        guard isDecimal, let seconds = Double(text), seconds >= 0 else {
            throw Problem(.badRequest, "wait: a number of seconds, such as 10")
        }
        self.seconds = seconds
    }

    /// As a duration no longer than `longest`, however long it is: `Duration` itself traps on what it cannot hold.
    func duration(atMost longest: Duration) -> Duration {
        seconds < longest / .seconds(1) ? .seconds(seconds) : longest
    }
}
