import Concurrency
import Testing

@Suite struct DequeTests {
    @Test func keepsFirstInFirstOutOrder() {
        var queue = Deque<Int>()
        var expected = 0
        for number in 0..<20_000 {
            queue.append(number)
            if number % 3 != 0 {
                let front = queue.popFirst()
                #expect(front == expected)
                expected += 1
            }
        }
        #expect(Array(queue.all) == Array(expected..<20_000))
        #expect(queue.first == expected)
    }
}
