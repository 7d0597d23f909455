import Concurrency
import Telemetry
import Testing

/// A sink that stores its records.
private final class RecordList: LogSink {
    private let list = Lock<[LogRecord]>([])
    var records: [LogRecord] { list.withLock { $0 } }
    func log(_ record: LogRecord) { list.withLock { $0.append(record) } }
}

@Suite struct LogTests {
    @Test func logsItsLevelAndAbove() {
        for level in LogLevel.allCases {
            let sink = RecordList()
            let log = Log(level: level, sink: sink)
            log.trace("trace")
            log.debug("debug")
            log.info("info")
            log.notice("notice")
            log.warning("warning")
            log.error("error")
            log.critical("critical")
            #expect(sink.records.map(\.level) == LogLevel.allCases.filter { $0 >= level })
            #expect(sink.records.map(\.message) == sink.records.map(\.level.rawValue))
            #expect(LogLevel.allCases.filter(log.isOn) == sink.records.map(\.level))
        }
    }

    @Test func evaluatesNothingBelowItsLevel() {
        func message() -> String {
            Issue.record("the message was evaluated")
            return ""
        }
        func fields() -> LogMetadata {
            Issue.record("the fields were evaluated")
            return [:]
        }
        Log(level: .info, sink: RecordList()).debug(message(), fields())
        Log.silent.critical(message(), fields())
        #expect(!Log.silent.isOn(.critical))
    }

    @Test func permitsOneLineAMinuteAndCountsTheOtherEvents() {
        let (throttle, start) = (LogThrottle(), ContinuousClock.now)
        let seconds = [0, 1, 59, 60, 61, 130]
        let lines = seconds.map { (second: Int) -> Int? in throttle.next(at: start + .seconds(second)) }
        let expected: [Int?] = [0, nil, nil, 2, nil, 1]
        #expect(lines == expected)
    }

    @Test func nearestBoundFieldWins() throws {
        let sink = RecordList()
        let log = Log(level: .trace, sink: sink).with(["worker": "w1", "job": "none"])
        log.with(["job": "j1", "lane": nil as String?]).info("ready", ["bytes": 10, "job": "j2", "warm": true])
        log.info("idle")
        let fields = try #require(sink.records.first).fields
        #expect(fields["worker"] == .string("w1"))
        #expect(fields["job"] == .string("j2"))
        #expect(fields["lane"] == nil)
        #expect(fields["bytes"] == .integer(10))
        #expect(fields["warm"] == .bool(true))
        #expect(sink.records[1].fields["job"] == .string("none"))
    }
}
