import Concurrency
import Glibc
import Telemetry
import Testing

@Suite struct LogWriterTests {
    private struct Pipe {
        let reader: Int32
        let writer: Int32

        init() {
            var ends: [Int32] = [0, 0]
            precondition(pipe(&ends) == 0)
            (reader, writer) = (ends[0], ends[1])
        }

        /// Reads until all writers have closed the pipe.
        func readToEnd() -> String {
            var text: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65536)
            while true {
                let count = read(reader, &buffer, buffer.count)
                if count <= 0 { return String(decoding: text, as: UTF8.self) }
                text += buffer[..<count]
            }
        }
    }

    @Test func writesEveryRecordInOrderBeforeShutdownEnds() {
        let pipe = Pipe()
        let text = Lock("")
        let reading = NamedThread(name: "reader") {
            let all = pipe.readToEnd()
            text.withLock { $0 = all }
        }
        let writer = LogWriter(descriptor: pipe.writer, format: .text(isColoured: false), capacity: 100_000)
        let log = Log(level: .info, sink: writer)
        for number in 0..<20_000 { log.info("\(number)") }
        writer.shutdown(within: .seconds(60))
        close(pipe.writer)
        reading.join()
        close(pipe.reader)
        let numbers = text.withLock { $0 }.split(separator: "\n").compactMap { Int($0.split(separator: " ").last!) }
        #expect(numbers == Array(0..<20_000))
        #expect(writer.dropped == 0)
    }

    @Test func stuckReaderDropsRecordsAndReportsTheLoss() {
        let pipe = Pipe()
        let writer = LogWriter(descriptor: pipe.writer, format: .json, capacity: 10)
        let log = Log(level: .info, sink: writer)
        // Far more than the pipe (64 KiB) and the queue hold. Logging returns although nothing is read.
        let message = String(repeating: "x", count: 1000)
        for _ in 0..<5000 { log.info(message) }
        let dropped = writer.dropped
        #expect(dropped > 4000)

        let text = Lock("")
        let reading = NamedThread(name: "reader") {
            let all = pipe.readToEnd()
            text.withLock { $0 = all }
        }
        writer.shutdown(within: .seconds(60))
        close(pipe.writer)
        reading.join()
        close(pipe.reader)
        let lines = text.withLock { $0 }.split(separator: "\n")
        let records = lines.filter { $0.contains(message) }.count
        let reported = lines.filter { $0.contains("\"log records dropped\"") }
            .compactMap { $0.split(separator: ":").last.flatMap { Int($0.dropLast()) } }.reduce(0, +)
        #expect(records + dropped == 5000)
        #expect(reported == dropped)
    }

    @Test func shutdownGivesUpOnAStuckReader() {
        let pipe = Pipe()
        let writer = LogWriter(descriptor: pipe.writer, format: .json, capacity: 1000)
        let log = Log(level: .info, sink: writer)
        for _ in 0..<1000 { log.info(String(repeating: "x", count: 1000)) }
        writer.shutdown(within: .milliseconds(100))
        #expect(writer.dropped > 0)
        log.info("too late")
        writer.shutdown()
        close(pipe.writer)
        close(pipe.reader)
    }

    @Test func closedReaderDoesNotEndTheProcess() {
        let pipe = Pipe()
        close(pipe.reader)
        let writer = LogWriter(descriptor: pipe.writer, format: .json)
        Log(level: .info, sink: writer).info("nobody reads this")
        writer.shutdown(within: .seconds(60))
        #expect(writer.dropped == 1)
        close(pipe.writer)
    }

    @Test func writesLinesLongerThanAPipeTakesAtOnce() {
        let pipe = Pipe()
        let writer = LogWriter(descriptor: pipe.writer, format: .text(isColoured: false))
        let message = String(repeating: "y", count: 20_000)
        Log(level: .info, sink: writer).info(message)
        writer.shutdown(within: .seconds(60))
        close(pipe.writer)
        #expect(pipe.readToEnd().hasSuffix(message + "\n"))
        close(pipe.reader)
    }
}
