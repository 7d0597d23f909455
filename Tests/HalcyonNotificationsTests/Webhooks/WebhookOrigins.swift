import Concurrency
import HalcyonModel
import HalcyonNotifications
import TestSupport

extension NotifierOptions {
    /// Configures origins of the test as webhook targets, and disables publishing to Redis.
    mutating func setTargets(_ origins: [String: RawOrigin]) {
        pubSub = nil
        webhooks.targets = WebhookTargets(
            urls: origins.mapValues { try! WebURL($0.url("/hook?a=b")) }, secrets: [Secrets.one, Secrets.other])
    }
}

extension RawOrigin {
    /// Returns an origin that fails a number of times for each event, and then succeeds.
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
