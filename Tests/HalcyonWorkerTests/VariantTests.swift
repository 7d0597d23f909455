import Foundation
import HalcyonWorker
import Redis
import TestSupport
import Testing

/// Jobs with several variants.
@Suite(.limitedParallelism) struct VariantTests {
    private func sizes(_ event: EventLog.Entry) -> [String] {
        event.variants.map { "\($0["width"] ?? "")x\($0["height"] ?? "") \($0["format"] ?? "")" }
    }

    private func keys(_ event: EventLog.Entry) -> [String] { event.variants.compactMap { $0["key"] as? String } }

    @Test func oneFetchAndOneEventServeAllVariants() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                let source = origin.url("/rocket.jpg")
                try await cluster.submit(
                    """
                    {"id":"all","source":"\(source)","format":"webp","variants":[{"width":400,"height":300},
                    {"width":64,"format":"png","blurhash":true,"dominantColor":true},{"height":50,"format":"jpeg"}]}
                    """)
                let ready = try await cluster.events.terminal(of: "all")
                #expect(ready.kind == "ready" && ready.origin == "network")
                #expect(sizes(ready) == ["400x300 webp", "64x43 png", "75x50 jpeg"])
                #expect(ready.variants.map { $0["blurhash"] != nil } == [false, true, false])
                #expect((ready.variants[1]["dominantColor"] as? String)?.wholeMatch(of: /#[0-9a-f]{6}/) != nil)
                #expect(ready.key == keys(ready)[0] && Set(keys(ready)).count == 3)
                #expect(ready.data["expiresAt"] != nil)
                for variant in ready.variants {
                    let key = try #require(variant["key"] as? String)
                    let body = try await cluster.client.send("HGET", .string(key), "body").bytes
                    #expect(body?.count == variant["bytes"] as? Int)
                }
                #expect(origin.requests.count == 1)
                #expect(cluster.events.all.map(\.kind) == ["started", "ready"])

                // Each variant equals the result of a job for it alone.
                try await cluster.submit(
                    #"{"id":"one","source":"\#(source)","format":"webp","width":400,"height":300}"#)
                let one = try await cluster.events.terminal(of: "one")
                #expect(one.origin == "memory" && one.key == keys(ready)[0])

                try await cluster.submit(
                    #"{"id":"again","source":"\#(source)","variants":[{"height":50,"format":"jpeg"}, "#
                        + #"{"width":400,"height":300,"format":"webp"}]}"#)
                let again = try await cluster.events.terminal(of: "again")
                #expect(again.origin == "memory" && keys(again) == [keys(ready)[2], keys(ready)[0]])
                #expect(again.variants[0]["sha256"] as? String == ready.variants[2]["sha256"] as? String)
                #expect(origin.requests.count == 1)
            }
        }
        try await origin.stop()
    }

    @Test func factsAreResultsLikeOthers() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                let source = origin.url("/rocket.jpg")
                try await cluster.submit(
                    #"{"id":"a","source":"\#(source)","variants":[{"width":64},{"info":true,"name":"facts"}]}"#)
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready")
                let facts = ready.variants[1]
                #expect(facts["format"] as? String == "json" && facts["name"] as? String == "facts")
                let info = try #require(facts["info"] as? NSDictionary)
                #expect(info["format"] as? String == "jpeg" && info["orientation"] as? Int == 1)
                let loaded = try #require(ready.data["source"] as? NSDictionary)
                for member in ["width", "height", "bytes"] { #expect(info[member] as? Int == loaded[member] as? Int) }
                #expect(facts["width"] as? Int == info["width"] as? Int)

                // The result is the document, and is found by other jobs.
                let body = try #require(
                    try await cluster.client.send("HGET", .string(keys(ready)[1]), "body").bytes)
                #expect(try JSONSerialization.jsonObject(with: Data(body)) as? NSDictionary == info)
                try await cluster.submit(
                    #"{"id":"b","source":"\#(source)","info":{},"width":9,"delivery":"inline","tags":["t"]}"#)
                let again = try await cluster.events.terminal(of: "b")
                #expect(again.origin == "memory" && again.key == keys(ready)[1])
                #expect(again.variants[0]["info"] as? NSDictionary == info)
                #expect(again.variants[0]["data"] as? String == Data(body).base64EncodedString())

                // Analyses and the location have keys of their own.
                try await cluster.submit(
                    #"{"id":"c","source":"\#(source)","variants":[{"info":{"location":true}},{"info":true,"phash":true}]}"#
                )
                let others = try await cluster.events.terminal(of: "c")
                #expect(Set(keys(others) + [keys(ready)[1]]).count == 3 && others.origin == "source-cache")
                let hashed = try #require(others.variants[1]["info"] as? NSDictionary)
                #expect((hashed["phash"] as? String)?.utf8.count == 16 && info["phash"] == nil)
                #expect(origin.requests.count == 1)
            }
        }
        try await origin.stop()
    }

    /// The outcome of a search is stored with the result.
    @Test func eventsSayWhatASearchHasChosen() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                let job = """
                    "source":"\(origin.url("/rocket.jpg"))","width":300,"variants":[{"format":"best"},
                    {"format":"jpeg","maximumBytes":5000},{"format":"jpeg"}]}
                    """
                try await cluster.submit(#"{"id":"first","# + job)
                let first = try await cluster.events.terminal(of: "first")
                let choices = first.variants.map { $0["encoding"] as? [String: Any] }
                let (best, small) = (try #require(choices[0]), try #require(choices[1]))
                #expect(best["similarity"] as? Double ?? 0 >= 0.98 && best["encodings"] as? Int ?? 0 > 1)
                #expect(["jpeg", "webp", "avif"].contains(first.variants[0]["format"] as? String))
                #expect((1...79).contains(small["quality"] as? Int ?? 0) && small["similarity"] == nil)
                #expect(first.variants[1]["bytes"] as? Int ?? .max <= 5000 && choices[2] == nil)
                try await cluster.submit(#"{"id":"second","# + job)
                let second = try await cluster.events.terminal(of: "second")
                #expect(second.origin == "memory" && keys(second) == keys(first))
                let stored = second.variants.map { $0["encoding"] as? [String: Any] }
                #expect(stored.map { $0?["quality"] as? Int } == choices.map { $0?["quality"] as? Int })
                #expect(stored.map { $0?["encodings"] as? Int } == choices.map { $0?["encodings"] as? Int })

                try await cluster.submit(
                    #"{"id":"none","source":"\#(origin.url("/rocket.jpg"))","width":300,"format":"jpeg","maximumBytes":90}"#
                )
                let failed = try await cluster.events.terminal(of: "none")
                #expect(failed.kind == "failed" && failed.data["code"] as? String == "too_large")
                #expect((failed.data["message"] as? String)?.contains("maximumBytes is 90") == true)
            }
        }
        try await origin.stop()
    }

    @Test func rendersOnlyMissingVariants() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                let source = #""source":"\#(origin.url("/a"))""#
                try await cluster.submit(#"{"id":"first",\#(source),"width":80,"height":60,"maxAge":60}"#)
                let first = try await cluster.events.terminal(of: "first")
                let stored = try await cluster.client.send("HGET", .string(first.key), "expiresAt").string
                try await cluster.submit(
                    #"{"id":"both",\#(source),"height":60,"variants":[{"width":30,"height":60},{"width":80,"height":60}]}"#
                )
                let both = try await cluster.events.terminal(of: "both")
                #expect(both.origin == "source-cache" && sizes(both) == ["30x60 jpeg", "80x60 jpeg"])
                #expect(keys(both)[1] == first.key)
                // The stored result has not been written again, and expires first.
                #expect(try await cluster.client.send("HGET", .string(first.key), "expiresAt").string == stored)
                #expect(both.data["expiresAt"] as? String == first.data["expiresAt"] as? String)
                #expect(origin.requests.count == 1)
            }
        }
        try await origin.stop()
    }

    @Test func equalVariantsShareOneResult() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                try await cluster.submit(
                    """
                    {"id":"twins","source":"\(origin.url("/a"))","delivery":"inline","variants":[{"width":40},
                    {"width":20,"screenScale":2},{"width":10}]}
                    """)
                let twins = try await cluster.events.terminal(of: "twins")
                #expect(sizes(twins) == ["40x27 jpeg", "40x27 jpeg", "10x7 jpeg"])
                #expect(keys(twins)[0] == keys(twins)[1])
                #expect(twins.variants[0]["data"] as? String == twins.variants[1]["data"] as? String)
                let stored = try await cluster.storedKeys().filter { !$0.hasSuffix(":source") }
                #expect(stored.sorted() == Set(keys(twins)).sorted())
            }
        }
        try await origin.stop()
    }

    @Test func failureNamesTheFailedVariant() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.images.outputPixels = 10_000 }) {
                let source = #""source":"\#(origin.url("/a"))""#
                try await cluster.submit(#"{"id":"small",\#(source),"width":40,"height":40}"#)
                #expect(try await cluster.events.terminal(of: "small").kind == "ready")
                // The first is stored, the second equals it, the third could be rendered, and the fourth is too large.
                try await cluster.submit(
                    """
                    {"id":"bad",\(source),"height":40,"variants":[{"width":40,"height":40},{"width":40,"height":40},
                    {"width":41,"height":40},{"width":400,"height":300}]}
                    """)
                let bad = try await cluster.events.terminal(of: "bad")
                #expect(bad.kind == "failed" && bad.code == "too_many_pixels" && bad.data["variants"] == nil)
                #expect(bad.message.hasPrefix("variants[3]: the output would have 400×300 pixels"), "\(bad.message)")
                // The message for a job without variants has no index.
                try await cluster.submit(#"{"id":"alone",\#(source),"width":400,"height":300}"#)
                #expect(
                    try await cluster.events.terminal(of: "alone").message.hasPrefix("the output would have 400×300"))
            }
        }
        try await origin.stop()
    }

    @Test func partialJobDeliversSuccessfulVariants() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.images.outputPixels = 10_000 }) {
                let source = #""source":"\#(origin.url("/a"))","partial":true"#
                let sizes = [(40, 40), (400, 300), (41, 40), (400, 300), (300, 400)]
                    .map { #"{"width":\#($0.0),"height":\#($0.1),"format":"png"}"# }
                try await cluster.submit(#"{"id":"some",\#(source),"variants":[\#(sizes.joined(separator: ","))]}"#)
                let some = try await cluster.events.terminal(of: "some")
                #expect(some.kind == "ready" && some.variants.map { $0["width"] as? Int } == [40, 41])
                let failures = some.data["failures"] as? [[String: Any]] ?? []
                #expect(failures.map { $0["variant"] as? Int } == [1, 3, 4])
                #expect(failures.allSatisfy { $0["code"] as? String == "too_many_pixels" })
                #expect((failures[0]["message"] as? String)?.hasPrefix("variants[1]: the output would have") == true)
                // A job fails if no variant succeeds, or if its source is invalid.
                try await cluster.submit(#"{"id":"none",\#(source),"variants":[\#(sizes[1]),\#(sizes[4])]}"#)
                #expect(try await cluster.events.terminal(of: "none").code == "too_many_pixels")
                try await cluster.submit(
                    #"{"id":"gone","source":"data:,x","partial":true,"variants":[{},{"width":9}]}"#)
                #expect(try await cluster.events.terminal(of: "gone").kind == "failed")
            }
        }
        try await origin.stop()
    }

    @Test(arguments: [(700 << 10, true), (2000, false)])
    func inlineLimitAppliesToTheSumOfVariants(limit: Int, isCarried: Bool) async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.results.inlineLimit = limit }) {
                let source = #""source":"\#(origin.url("/a"))","delivery":"inline","height":60"#
                // Each of them alone is sent inline.
                for width in [60, 61] {
                    try await cluster.submit(#"{"id":"w\#(width)",\#(source),"width":\#(width)}"#)
                    #expect(try await cluster.events.terminal(of: "w\(width)").variant["data"] != nil)
                }
                for (id, widths, origin) in [
                    ("found", [60, 61], "memory"), ("mixed", [60, 62], "source-cache"),
                    ("made", [63, 64], "source-cache"),
                ] {
                    let variants = widths.map { #"{"width":\#($0),"height":60}"# }.joined(separator: ",")
                    try await cluster.submit(#"{"id":"\#(id)",\#(source),"variants":[\#(variants)]}"#)
                    let ready = try await cluster.events.terminal(of: id)
                    #expect(ready.origin == origin)
                    #expect(ready.variants.map { $0["data"] != nil } == [isCarried, isCarried], "\(id)")
                    for key in keys(ready) {
                        #expect(try await cluster.client.send("EXISTS", .string(key)).integer == 1)
                    }
                }
            }
        }
        try await origin.stop()
    }

    @Test(arguments: [(700 << 10, 0), (100, 2)])
    func unstorableVariantsAreInlinedOrHandedOver(limit: Int, stored: Int) async throws {
        let origin = try SampleImages.origin(["Cache-Control: no-store"])
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.results.inlineLimit = limit }) {
                try await cluster.submit(
                    #"{"id":"a","source":"\#(origin.url("/a"))","variants":[{"width":64},{"width":32}]}"#)
                let ready = try await cluster.events.terminal(of: "a")
                #expect(sizes(ready) == ["64x43 jpeg", "32x21 jpeg"])
                #expect(ready.variants.allSatisfy { ($0["data"] != nil) == (stored == 0) })
                #expect(keys(ready).allSatisfy { $0.contains(":handoff:") == (stored > 0) })
                #expect(try await cluster.storedKeys().count == stored)
            }
        }
        try await origin.stop()
    }

    @Test func sendsAllVariantsInlineWithoutRedis() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.results.storeTimeout = .milliseconds(200) }) {
                await cluster.redis.stop()
                try await cluster.submit(
                    #"{"id":"a","source":"\#(origin.url("/a"))","variants":[{"width":64},{"width":32}]}"#)
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.variants.map { $0["data"] != nil } == [true, true])
                #expect(ready.data["expiresAt"] == nil)
            }
        }
        try await origin.stop()
    }
}
