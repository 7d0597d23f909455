import Concurrency
import HalcyonModel
import HalcyonNotifications
import TestSupport

extension NotifierOptions {
    /// Gives names to origins of the test, and has nothing published.
    mutating func name(_ origins: [String: RawOrigin]) {
        pubSub = nil
        webhooks.targets = WebhookTargets(
            urls: origins.mapValues { try! WebURL($0.url("/hook?a=b")) }, secrets: [Secrets.one, Secrets.other])
    }
}

extension RawOrigin {
    /// Answers so often with a failure before each event is taken.
    static func flaky(_ failures: Int, _ status: String, _ headers: [String] = []) -> RawOrigin {
        let counts = Lock<[String: Int]>([:])
        return RawOrigin { request in
            let count = counts.withLock { counts in
                counts[request.event ?? "", default: 0] += 1
                return counts[request.event ?? ""]!
            }
            return count > failures ? RawOrigin.answer() : RawOrigin.answer(status, headers)
        }
    }
}
