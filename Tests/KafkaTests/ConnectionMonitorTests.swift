import Testing

@testable import Kafka

@Suite struct ConnectionMonitorTests {
    @Test func answeredProbeReportsNothing() {
        var monitor = ConnectionMonitor()
        #expect(monitor.probe == nil)
        monitor.allBrokersDown()
        #expect(monitor.probe != nil)
        #expect(monitor.probed(answered: true) == nil)
        #expect(monitor.probe == nil)
    }

    @Test func reportsLossAndRecoveryOnce() {
        var monitor = ConnectionMonitor()
        monitor.allBrokersDown()
        #expect(monitor.probed(answered: false) == .lost)
        monitor.allBrokersDown()
        #expect(monitor.probed(answered: false) == nil)
        #expect(monitor.probed(answered: true) == .restored)
        #expect(monitor.probe == nil)
    }
}

@Suite struct ConnectionFailureTests {
    @Test(arguments: [
        (
            "[thrd:ssl://a:9093/bootstrap]: ssl://a:9093/bootstrap: SSL handshake failed: no certificate (after 4ms in "
                + "state SSL_HANDSHAKE, 1 identical error(s) suppressed)", "SSL handshake failed: no certificate"
        ),
        (
            "[thrd:ssl://a:9093/bootstrap]: ssl://a:9093/1: Disconnected (after 2ms in state SSL_HANDSHAKE)",
            "SSL handshake failed: Disconnected"
        ), ("[thrd:a:1/1]: a:1/1: Disconnected (after 2ms in state UP)", "Disconnected"),
        (
            "[thrd:a:1/bootstrap]: a:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused",
            "Connect to ipv4#127.0.0.1:1 failed: Connection refused"
        ), ("unknown form", "unknown form"),
    ])
    func reasonHasNoAddressesAndDurations(line: String, reason: String) { #expect(Admin.reason(in: line) == reason) }
}

@Suite struct MillisecondsTests {
    @Test func roundsUpAndStaysInRange() {
        #expect(Duration.milliseconds(250).milliseconds == 250)
        #expect(Duration.microseconds(1).milliseconds == 1)
        #expect(Duration.zero.milliseconds == 0)
        #expect(Duration.seconds(-3).milliseconds == 0)
        #expect(Duration.seconds(Int64.max).milliseconds == .max)
    }
}
