import HalcyonCoding
import HalcyonModel
import Testing

@Suite struct CacheFieldTests {
    @Test(arguments: ["", #""cache":null"#, #""cache":{}"#, #""cache":{"memory":true,"source":true,"reload":false}"#])
    func usesAllCachesByDefault(members: String) throws {
        #expect(try read(members).cache == CachePolicy())
        #expect(try read(members).cache.looksAtResults)
    }

    @Test func readsEachMember() throws {
        #expect(try !read(#""cache":{"memory":false}"#).cache.memory)
        #expect(try !read(#""cache":{"source":false}"#).cache.source)
        #expect(try read(#""cache":{"memory":true}"#).cache.store == .allowed)
        #expect(try read(#""cache":{"store":true}"#).cache.store == .allowed)
        #expect(try read(#""cache":{"store":false}"#).cache.store == .excluded)
        #expect(try read(#""cache":{"store":"required"}"#).cache.store == .required)
        #expect(try read(#""cache":{"reload":true}"#).cache.reload)
        #expect(try read(#""cache":{"onlyIfCached":true}"#).cache.onlyIfCached)
        #expect(try !read(#""cache":{"reload":true}"#).cache.looksAtResults)
        #expect(try !read(#""cache":{"memory":false}"#).cache.looksAtResults)
    }

    @Test(arguments: [
        (#""cache":{"memory":1}"#, "cache.memory: expected true or false, found a number"),
        (
            #""cache":{"disk":true}"#,
            "cache.disk: unknown cache option; expected memory, store, source, reload or onlyIfCached"
        ),
        (#""cache":"none""#, "cache: expected an object, found a string"),
        (#""cache":{"store":"maybe"}"#, "cache.store: expected true, false or \"required\""),
        (#""cache":{"store":1}"#, "cache.store: expected true or false, found a number"),
        (
            #""cache":{"store":"required","memory":false}"#,
            "cache.store: \"required\" cannot be combined with memory false"
        ),
        (
            #""cache":{"reload":true,"onlyIfCached":true}"#,
            "cache: reload and onlyIfCached cannot be combined"
        ),
        (#""tenant":"""#, "tenant: expected 1 to 64 letters, digits, dots, hyphens and underscores"),
        (#""tenant":"a:b""#, "tenant: expected 1 to 64 letters, digits, dots, hyphens and underscores"),
        (#""tenant":7"#, "tenant: expected a string, found a number"),
        (#""variants":[{"tenant":"a"}]"#, "variants[0].tenant: belongs to the job, not to one of its variants"),
        (#""variants":[{"cache":{}}]"#, "variants[0].cache: belongs to the job, not to one of its variants"),
    ])
    func rejectsInvalidCacheAndTenant(members: String, message: String) throws {
        for isStrict in [true, false] {
            let failure = try #require(rejection(members, by: JobDecoder(isStrict: isStrict))).failure
            #expect(failure.code == .invalidJob && failure.message == message)
        }
    }

    @Test func tenantChangesTheKeyAndCachePolicyDoesNot() throws {
        let keys = try ["", #""tenant":"a""#, #""tenant":"A""#, #""tenant":"a.b""#].map { try read($0).keys[0] }
        #expect(Set(keys).count == 4 && Set(keys.map(\.sourceHash)).count == 4)
        #expect(Set(keys.map(\.variantHash)).count == 1)
        #expect(try read(#""tenant":null"#).keys[0] == keys[0])
        #expect(try read(#""cache":{"reload":true},"maxAge":5"#).keys[0] == keys[0])
    }
}
