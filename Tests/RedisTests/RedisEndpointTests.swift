import Testing

@testable import Redis

@Suite struct RedisEndpointTests {
    @Test(arguments: [
        ("redis://127.0.0.1", "redis://127.0.0.1:6379"),
        ("redis://cache.example:7000/3", "redis://cache.example:7000/3"),
        ("REDIS://[::1]:7001", "redis://[::1]:7001"),
        ("redis://:secret@host", "redis://:***@host:6379"),
        ("redis://anna:se%40cr%2Fet@host/1", "redis://anna:***@host:6379/1"),
        ("unix:/run/redis.sock", "unix:/run/redis.sock"),
        ("unix:///run/redis.sock", "unix:/run/redis.sock"),
        ("redis+cluster://a", "redis+cluster://a:6379"),
        ("redis+cluster://anna:s,@a:1,[::1]:2,c/0", "redis+cluster://anna:***@a:1,[::1]:2,c:6379"),
        ("redis+sentinel://a,b:1/images", "redis+sentinel://a:26379,b:1/images"),
        ("redis+sentinel://:p@a/images/3", "redis+sentinel://:***@a:26379/images/3"),
        ("redis://host/2?timeout=1500ms", "redis://host:6379/2?timeout=1s500ms"),
        ("redis+cluster://a,b?timeout=1m", "redis+cluster://a:6379,b:6379?timeout=1m"),
        (
            "redis+sentinel://a/s?timeout=5s&sentinel-password=q",
            "redis+sentinel://a:26379/s?sentinel-password=***&timeout=5s"
        ),
        (
            "redis+sentinel://u:p@a/im%2Fages?sentinel-user=eve&sentinel-password=q%26",
            "redis+sentinel://u:***@a:26379/im/ages?sentinel-password=***&sentinel-user=eve"
        ),
    ])
    func parsesAddresses(text: String, shown: String) throws {
        #expect(try RedisEndpoint(text).description == shown)
    }

    @Test(arguments: [
        "", "localhost", "localhost:6379", "http://host", "redis:host", "redis://", "redis://:6379", "redis://host:0",
        "redis://host:65536", "redis://host:x", "redis://host/x", "redis://host/-1", "redis://host?db=1",
        "redis://[::1",
        "redis://user@host", "redis://user:@host", "redis://:a%4@host", "redis://:a%+4@host", "redis://:%ff@host",
        "redis://a,b", "redis://host/0/0", "redis+cluster://", "redis+cluster://a,", "redis+cluster://,a",
        "redis+cluster://a/1", "redis+cluster://a?x=1", "redis+cluster:a", "redis+other://a", "redis+sentinel://a",
        "redis+sentinel://a/", "redis+sentinel://a//1", "redis+sentinel://a/s/x", "redis+sentinel://a/s/1/2",
        "redis+sentinel://a/s?", "redis+sentinel://a/s?user=x", "redis+sentinel://a/s?sentinel-user=x",
        "redis+sentinel://a/s?sentinel-password=", "redis+sentinel://a/s?sentinel-password=x&sentinel-password=y",
        "redis://host?timeout=", "redis://host?timeout=5", "redis://host?timeout=0", "redis://host?timeout=2h",
        "redis://host?timeout=1s&timeout=1s", "redis://host?sentinel-password=x", "redis+cluster://a?timeout=fast",
        "unix:relative", "unix:/\(String(repeating: "x", count: 200))",
    ])
    func rejectsMalformedAddresses(text: String) {
        #expect { try RedisEndpoint(text) } throws: { ($0 as? RedisError)?.code == .badEndpoint }
    }

    @Test func separatesServerAndSentinelCredentials() throws {
        let endpoint = try RedisEndpoint(
            "redis+sentinel://anna:a%40b@h/images/3?sentinel-password=q%26&sentinel-user=eve")
        #expect(endpoint.login == Login(credentials: Credentials(user: "anna", password: "a@b"), database: 3))
        #expect(endpoint.sentinelLogin == Login(credentials: Credentials(user: "eve", password: "q&")))
        #expect(endpoint.servers == .sentinels([.tcp(host: "h", port: 26379)], service: "images"))
        let shared = try RedisEndpoint("redis+sentinel://anna:a@h/images")
        #expect(shared.sentinelLogin.credentials == nil)
    }

    @Test func descriptionsHidePasswords() throws {
        for address in [
            "redis://anna:hunter2@host", "redis+cluster://anna:hunter2@a,b",
            "redis+sentinel://anna:hunter2@a/s?sentinel-password=hunter2",
        ] {
            let endpoint = try RedisEndpoint(address)
            var dumped = ""
            dump(endpoint, to: &dumped)
            for text in ["\(endpoint)", String(reflecting: endpoint), dumped, "\([endpoint])"] {
                #expect(!text.contains("hunter2"))
            }
        }
        #expect { try RedisEndpoint("redis://anna:hunter2@host:port") } throws: { !"\($0)".contains("hunter2") }
    }
}
