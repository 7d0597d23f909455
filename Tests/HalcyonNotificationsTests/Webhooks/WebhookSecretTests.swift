import Testing

@testable import HalcyonNotifications

@Suite struct WebhookSecretTests {
    /// Uses the test vector of the reference libraries of Standard Webhooks.
    @Test func signsAsSpecified() {
        let signature = Secrets.one.signature(
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1_614_265_330, body: Array(#"{"test": 2432232314}"#.utf8))
        #expect(signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    @Test(arguments: [
        "", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        "whsec_ MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLQ==", "whsec_" + String(repeating: "AAAA", count: 22),
    ]) func rejectsMalformedSecrets(text: String) {
        #expect(WebhookSecret(text) == nil)
    }

    @Test(arguments: [32, 84]) func roundTripsThroughText(digits: Int) {
        let text = "whsec_" + String(repeating: "Ab+/", count: digits / 4)
        #expect(WebhookSecret(text)?.text == text)
    }
}
