import Concurrency
import Foundation
import HalcyonModel
import HalcyonWorker
import Redis
import TestSupport
import Testing
import Vips

/// Sources other than one photograph: watermarks, drawn avatars, animations.
@Suite(.limitedParallelism) struct AssetTests {
    /// Returns an image file encoded by libvips.
    private func file(_ format: Format, _ picture: @escaping @Sendable () throws -> Image) async throws -> [UInt8] {
        let pool = ThreadPool(name: "make", threads: 1, onThreadEnd: VipsLibrary.endThread)
        let result: Result<[UInt8], any Error>
        do { result = .success(try await pool.run { try picture().encoded(as: format) }) } catch {
            result = .failure(error)
        }
        await blocking { pool.shutdown() }
        return try result.get()
    }

    /// Returns the red, green and blue values of a pixel of a stored result.
    private func color(of key: String, x: Int, y: Int, _ cluster: WorkerFixture) async throws -> [Int] {
        let body = try #require(try await cluster.client.send("HGET", .string(key), "body").bytes)
        return try await blocking { () throws(VipsError) in
            defer { VipsLibrary.endThread() }
            return try EncodedImage(body).open().samples(x: x, y: y).map { Int($0) }
        }
    }

    @Test func watermarkIsFetchedOnceForManyJobs() async throws {
        let photograph = try SampleImages.bytes("chelsea.jpg")
        let mark = try await file(.png) { try Image(color: [255, 0, 255], width: 8, height: 8) }
        let origin = RawOrigin { request in
            RawOrigin.Step.response(
                request.path == "/mark.png" ? mark : photograph, ["Cache-Control: max-age=600"])
        }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                let steps = #"[{"watermark":{"source":"\#(origin.url("/mark.png"))","position":"topLeft"}}]"#
                for number in 0..<60 {
                    try await cluster.submit(
                        """
                        {"id":"\(number)","source":"\(origin.url("/\(number).jpg"))","width":60,"height":40,
                        "format":"png","processors":\(steps)}
                        """)
                }
                for number in 0..<60 {
                    let ready = try await cluster.events.terminal(of: "\(number)")
                    #expect(ready.kind == "ready", "\(ready.message)")
                }
                #expect(origin.requests.filter { $0.path == "/mark.png" }.count == 1)
                #expect(origin.requests.count == 61)
                let key = try await cluster.events.terminal(of: "7").key
                #expect(try await color(of: key, x: 3, y: 3, cluster) == [255, 0, 255])
                #expect(try await color(of: key, x: 30, y: 20, cluster) != [255, 0, 255])
            }
        }
        try await origin.stop()
    }

    @Test func failureNamesTheUnavailableWatermark() async throws {
        let photograph = try SampleImages.bytes("chelsea.jpg")
        let origin = RawOrigin { request in
            request.path == "/photo" ? RawOrigin.Step.response(photograph) : RawOrigin.answer("404 Not Found")
        }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                for (id, mark) in [("gone", origin.url("/mark.png")), ("private", "http://10.0.0.1/mark.png")] {
                    try await cluster.submit(
                        """
                        {"id":"\(id)","source":"\(origin.url("/photo"))","width":60,"height":40,
                        "processors":[{"watermark":{"source":"\(mark)"}}]}
                        """)
                    let failed = try await cluster.events.terminal(of: id)
                    #expect(failed.code == (id == "gone" ? "not_found" : "blocked_address"))
                    #expect(failed.message.hasPrefix("the asset \(mark): "), "\(failed.message)")
                }
            }
        }
        try await origin.stop()
    }

    @Test func initialsAreRenderedAndCachedLikeOtherSources() async throws {
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                try await cluster.submit(
                    ##"{"id":"a","source":{"initials":"JD","background":"#123456"},"width":64,"format":"png"}"##)
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready", "\(ready.message)")
                #expect(ready.json["subject"] as? String == "initials:JD" && ready.origin == "network")
                #expect(ready.variant["width"] as? Int == 64 && ready.variant["height"] as? Int == 64)
                let source = try #require(ready.data["source"] as? [String: Any])
                #expect(source["width"] as? Int == 1024 && source["format"] as? String == "png")
                #expect(source["status"] == nil)
                #expect(try await color(of: ready.key, x: 1, y: 1, cluster).prefix(3) == [0x12, 0x34, 0x56])
                // A year.
                let ttl = try await cluster.client.send("PTTL", .string(ready.key)).integer ?? 0
                #expect((31_500_000_000...31_536_000_000).contains(ttl))
                try await cluster.submit(
                    #"{"id":"b","source":{"initials":"JD","background":"rgb(18 52 86)"},"width":64,"format":"png"}"#)
                #expect(try await cluster.events.terminal(of: "b").origin == "memory")
            }
        }
    }

    @Test func animationsStayAnimated() async throws {
        let animation = try await file(.gif) {
            let frames = try [[255.0, 0, 0], [0, 255, 0], [0, 0, 255]].map {
                try Image(color: $0, width: 40, height: 30).inMemory()
            }
            return try Image.strip(frames, delays: [100, 100, 100], loop: 0)
        }
        let origin = RawOrigin { _ in RawOrigin.Step.response(animation) }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                try await cluster.submit(
                    """
                    {"id":"a","source":"\(origin.url("/a.gif"))","width":20,"variants":[{},{"format":"webp"},{"frames":2},
                    {"frames":1},{"format":"jpeg"}]}
                    """)
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready", "\(ready.message)")
                #expect(ready.variants.map { $0["frames"] as? Int } == [3, 3, 2, nil, nil])
                #expect(ready.variants.map { $0["format"] as? String } == ["gif", "webp", "gif", "png", "jpeg"])
                #expect(ready.variants.allSatisfy { $0["width"] as? Int == 20 && $0["height"] as? Int == 15 })
                #expect(origin.requests.count == 1)
            }
        }
        try await origin.stop()
    }
}
