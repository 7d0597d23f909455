import Redis
import Testing

@Suite struct RedisEndpointTests {
    @Test(arguments: [
        ("redis://127.0.0.1", "redis://127.0.0.1:6379"),
        ("redis://cache.example:7000/3", "redis://cache.example:7000/3"),
        ("REDIS://[::1]:7001", "redis://[::1]:7001"),
        ("redis://:secret@host", "redis://:***@host:6379"),
        ("redis://anna:se%40cr%2Fet@host/1", "redis://anna:***@host:6379/1"),
        ("unix:/run/redis.sock", "unix:/run/redis.sock"),
        ("unix:///run/redis.sock", "unix:/run/redis.sock"),
    ])
    func readsAddresses(text: String, shown: String) throws {
        #expect(try RedisEndpoint(text).description == shown)
    }

    @Test(arguments: [
        "", "localhost", "localhost:6379", "http://host", "redis:host", "redis://", "redis://:6379", "redis://host:0",
        "redis://host:65536", "redis://host:x", "redis://host/x", "redis://host/-1", "redis://host?db=1",
        "redis://[::1",
        "redis://user@host", "redis://user:@host", "redis://:a%4@host", "redis://:a%+4@host", "redis://:%ff@host",
        "unix:relative", "unix:/\(String(repeating: "x", count: 200))",
    ])
    func refusesWhatIsNoAddress(text: String) {
        #expect { try RedisEndpoint(text) } throws: { ($0 as? RedisError)?.code == .badEndpoint }
    }

    @Test(arguments: ["redis+cluster://a,b", "redis+sentinel://a/b"])
    func saysThatClustersComeLater(text: String) {
        #expect { try RedisEndpoint(text) } throws: { "\($0)".contains("not supported yet") }
    }

    @Test func showsNoPasswordAnywhere() throws {
        let endpoint = try RedisEndpoint("redis://anna:hunter2@host")
        var dumped = ""
        dump(endpoint, to: &dumped)
        for text in ["\(endpoint)", String(reflecting: endpoint), dumped, "\([endpoint])"] {
            #expect(!text.contains("hunter2"))
        }
        #expect { try RedisEndpoint("redis://anna:hunter2@host:port") } throws: { !"\($0)".contains("hunter2") }
    }
}
