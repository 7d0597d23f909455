import Concurrency
import Curl
import HalcyonModel
import Testing

@testable import HalcyonNotifications

/// Definitions of purge hooks, and the requests that follow from them.
@Suite struct PurgeHookDefinitionTests {
    private static func batch(_ tags: [String]) -> PurgeBatch {
        var batch = PurgeBatch()
        _ = batch.add(PurgeNotice(id: "event", tags: tags), within: PurgeHook.Batch())
        return batch
    }

    private func request(_ definition: String, _ tags: [String] = ["a", "b%20c"]) throws -> HTTPRequest {
        try PurgeHook(definition: definition).request(for: Self.batch(tags))
    }

    private func text(_ request: HTTPRequest) -> String { String(decoding: request.body, as: UTF8.self) }

    @Test func cloudflarePurgesTags() throws {
        let request = try request(#"{"template":"cloudflare","zone":"023e","token":"secret"}"#)
        #expect(request.method == .post)
        #expect(request.url == "https://api.cloudflare.com/client/v4/zones/023e/purge_cache")
        #expect(request.headers["Authorization"] == "Bearer secret")
        #expect(request.headers["Content-Type"] == "application/json")
        #expect(text(request) == #"{"tags":["a","b%20c"]}"#)
    }

    @Test func fastlyPurgesSurrogateKeys() throws {
        let definition = #"{"template":"fastly","service":"SU1Z","token":"secret""#
        let request = try request("\(definition)}")
        #expect(request.method == .post && request.url == "https://api.fastly.com/service/SU1Z/purge")
        #expect(request.headers["Fastly-Key"] == "secret" && request.headers["Fastly-Soft-Purge"] == nil)
        #expect(text(request) == #"{"surrogate_keys":["a","b%20c"]}"#)
        #expect(try self.request("\(definition),\"soft\":true}").headers["Fastly-Soft-Purge"] == "1")
        #expect(try PurgeHook(definition: "\(definition)}").batch.tags == 256)
    }

    @Test func cloudFrontInvalidatesTagsWithASignature() throws {
        let definition =
            #"{"template":"cloudfront","distribution":"E1","accessKey":"AK","secretKey":"SK","sessionToken":"ST"}"#
        let request = try request(definition)
        #expect(request.method == .post)
        #expect(request.url == "https://cloudfront.amazonaws.com/2020-05-31/distribution/E1/invalidation")
        #expect(
            request.signature
                == .init(accessKey: "AK", secretKey: "SK", region: "us-east-1", service: "cloudfront"))
        #expect(request.headers["x-amz-security-token"] == "ST")
        #expect(text(request).contains("<Quantity>2</Quantity><Items><Path>#a</Path><Path>#b%20c</Path></Items>"))
        #expect(text(request).contains("<CallerReference>\(Self.batch(["a", "b%20c"]).id)</CallerReference>"))
        // A later purge of the same tags is another invalidation.
        var later = PurgeBatch()
        _ = later.add(PurgeNotice(id: "other", tags: ["a", "b%20c"]), within: PurgeHook.Batch())
        #expect(later.id != Self.batch(["a", "b%20c"]).id)
    }

    @Test func varnishPurgesByXkey() throws {
        let definition = #"{"template":"varnish","url":"http://10.0.0.7:6081/","headers":{"x-token":"t"}"#
        let request = try request("\(definition)}")
        #expect(request.method == .purge && request.url == "http://10.0.0.7:6081/" && request.body.isEmpty)
        #expect(request.headers["xkey-purge"] == "a b%20c" && request.headers["x-token"] == "t")
        #expect(try self.request("\(definition),\"soft\":true}").headers["xkey-softpurge"] == "a b%20c")
        #expect(try PurgeHook(definition: "\(definition)}").batch.bytes == 6144)
    }

    @Test func ownRequestsHavePlaceholders() throws {
        let request = try request(
            #"""
            {"url":"https://cdn.example.org/p?a=b","method":"PUT","headers":{"X-Tags":"{{tags.commas}}","X":"{{count}}"},
            "body":"{{tags.spaces}}|{{tags.json}}|{{id}}"}
            """#)
        #expect(request.method == .put && request.url == "https://cdn.example.org/p?a=b")
        #expect(request.headers["X-Tags"] == "a,b%20c" && request.headers["X"] == "2")
        #expect(text(request) == #"a b%20c|["a","b%20c"]|\#(Self.batch(["a"]).id)"#)
        #expect(try self.request(#"{"url":"http://x.org/","method":"BAN"}"#).method == .ban)
    }

    @Test func limitsHaveDefaultsAndSettings() throws {
        let standard = try PurgeHook(definition: #"{"url":"http://x.org/"}"#)
        #expect(standard.method == .post && standard.attempts == nil)
        #expect(standard.batch.tags == 100 && standard.batch.bytes == 8192 && standard.batch.linger == .seconds(1))
        let hook = try PurgeHook(
            definition:
                #"{"url":"http://x.org/","batch":2,"batchBytes":512,"linger":"0s","attempts":3}"#)
        #expect(hook.batch.tags == 2 && hook.batch.bytes == 512 && hook.batch.linger == .zero && hook.attempts == 3)
    }

    @Test(arguments: [
        ("", "expected a JSON object"), ("[]", "expected a JSON object"), ("{}", "needs a url or a template"),
        (#"{"template":"akamai"}"#, "template: expected one of cloudflare, fastly, cloudfront, varnish"),
        (#"{"template":"cloudflare","token":"SECRET"}"#, "zone: is missing"),
        (#"{"template":"cloudflare","zone":"z","token":"SECRET\n"}"#, "token: expected visible ASCII characters"),
        (#"{"template":"varnish"}"#, "url: is missing"),
        (#"{"template":"fastly","service":"s","token":"SECRET","soft":1}"#, "soft: expected true or false"),
        (#"{"url":"ftp://SECRET/"}"#, "url: expected an http or https URL"),
        (#"{"url":"http://u:SECRET@x.org/"}"#, "url: expected an http or https URL without a user"),
        (#"{"url":"http://x.org/","token":"SECRET"}"#, "unknown member token"),
        (#"{"url":"http://x.org/","method":"SECRET"}"#, "method: expected one of"),
        (#"{"url":"http://x.org/","method":"PURGE","body":"SECRET"}"#, "body: requests with PURGE have none"),
        (#"{"url":"http://x.org/","body":"{{SECRET}}"}"#, "body: unknown placeholder"),
        (#"{"url":"http://x.org/","headers":{"a":"{{SECRET}}"}}"#, "headers: unknown placeholder"),
        (#"{"url":"http://x.org/","headers":{"a":7}}"#, "headers: expected an object of texts"),
        (#"{"url":"http://x.org/","headers":{"a\n":"SECRET"}}"#, "headers: expected names of headers"),
        (#"{"url":"http://x.org/","headers":{"a":"SECRET\r\nb: c"}}"#, "headers: expected names of headers"),
        (#"{"url":"http://x.org/","headers":{"Content-Length":"1"}}"#, "headers: expected names of headers"),
        (#"{"url":"http://x.org/","batch":1}"#, "batch: expected a whole number from 2 to 3000"),
        (#"{"url":"http://x.org/","batchBytes":511}"#, "batchBytes: expected a whole number from 512"),
        (#"{"url":"http://x.org/","linger":"2m"}"#, "linger: expected a duration"),
        (#"{"url":"http://x.org/","attempts":0}"#, "attempts: expected a whole number from 1 to 1000"),
    ])
    func errorsNameTheMemberWithoutItsValue(_ definition: String, _ message: String) throws {
        let error = #expect(throws: PurgeHookError.self) { try PurgeHook(definition: definition) }
        let text = try #require(error?.description)
        #expect(text.hasPrefix(message) && !text.contains("SECRET"))
    }

    @Test func purgesThatWaitAreSentAtTheEnd() async throws {
        var limits = PurgeHook.Batch()
        limits.linger = .seconds(3600)
        let sent = Lock<[PurgeBatch]>([])
        let batcher = PurgeHookBatcher(limits) { batch in
            sent.withLock { $0.append(batch) }
            return .done(nil)
        }
        async let outcome = batcher.report(PurgeNotice(id: "event", tags: ["a"]))
        await batcher.close()
        guard case .done(nil) = await outcome else {
            Issue.record("the purge was not sent")
            return
        }
        #expect(sent.withLock { $0.map(\.tags) } == [["a"]])
    }

    @Test func batchesAreLimitedByTagsAndBytes() {
        var limits = PurgeHook.Batch()
        limits.tags = 3
        var batch = PurgeBatch()
        func add(_ tags: String...) -> Bool { batch.add(PurgeNotice(id: tags.joined(), tags: tags), within: limits) }
        #expect(batch.isEmpty && add("a", "b") && !batch.isFull(limits))
        // A tag that is in the batch needs no space.
        #expect(add("b") && !add("c", "d") && add("a", "c") && batch.isFull(limits) && !add("d"))
        #expect(batch.tags == ["a", "b", "c"])
        limits = PurgeHook.Batch()
        limits.bytes = 8
        batch = PurgeBatch()
        #expect(add("aaa") && add("bbb") && batch.isFull(limits) && !add("c"))
        // The tags of one purge are not divided.
        batch = PurgeBatch()
        #expect(add("aaaaaaaaaaaa"))
    }
}
