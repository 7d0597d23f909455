import Concurrency
import HalcyonModel
import HalcyonSources
import HalcyonWorker
import TestSupport
import Testing

/// Sources of every kind pass through the same pipeline.
@Suite(.limitedParallelism) struct SourceKindTests {
    /// A custom provider that serves a sample photograph and counts its fetches.
    private final class Album: CustomSourceProvider {
        let name = "album"
        let fetches = Lock(0)

        func cacheKey(for reference: String) throws(JobError) -> String {
            guard reference == "rocket" else { throw JobError(.invalidJob, "expected the name of a photograph") }
            return reference
        }

        func fetch(_ reference: String, ifNoneMatch known: Validators?) async throws -> FetchResponse {
            fetches.withLock { $0 += 1 }
            return .loaded(LoadedSource(body: try SampleImages.bytes("\(reference).jpg"), lifetime: .seconds(600)))
        }
    }

    /// A source as written in a job, the subject of its events, and its format.
    private struct Kind {
        let name: String
        let source: String
        let subject: String
        let format: String
    }

    @Test(.needsFFmpeg) func allKindsPublishTheSameEventsAndAreCached() async throws {
        let photograph = try SampleImages.bytes()
        let store = try await S3Server.start(["pictures/rocket.jpg": photograph])
        let folder = TemporaryFolder("kinds")
        let file = folder.write(photograph, to: "rocket.jpg")
        let clip = folder.write(try await TestClip.mp4(isTurned: true), to: "clip.mp4")
        let album = Album()
        let dot = "R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs="
        let kinds = [
            Kind(
                name: "s3", source: #""s3://pictures/rocket.jpg""#, subject: "s3://pictures/rocket.jpg", format: "jpeg"),
            Kind(name: "file", source: #""file://\#(file)""#, subject: "file://\(file)", format: "jpeg"),
            Kind(
                name: "video", source: #"{"video":"file://\#(clip)","seconds":1.5}"#, subject: "file://\(clip)#t=1.5",
                format: "png"),
            Kind(
                name: "data", source: #""data:image/gif;base64,\#(dot)""#,
                subject: "data:sha256=1f117ab884befddb6b06149ee2aa019d76d02b8635c49d734031d69d2d0d7f93", format: "gif"),
            Kind(
                name: "base64", source: #"{"base64":"\#(dot)","cacheKey":"dot"}"#, subject: "data:key=dot",
                format: "gif"),
            Kind(name: "initials", source: #""initials:JD""#, subject: "initials:JD", format: "png"),
            Kind(name: "custom", source: #""album:rocket""#, subject: "album:rocket", format: "jpeg"),
        ]
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({
                $0.sources.fileRoots = [folder.path]
                $0.sources.s3.endpoint = try? WebURL("http://127.0.0.1:\(store.port)")
                $0.sources.s3.region = S3Server.region
                $0.sources.s3.credentials = .init(accessKey: S3Server.accessKey, secretKey: S3Server.secretKey)
                // Allows only what the operator has configured.
                $0.sources.policy = AddressPolicy()
                $0.providers = (try? CustomProviders([album])) ?? CustomProviders()
            }) {
                for kind in kinds {
                    let fields = #""source":\#(kind.source),"width":20,"height":20"#
                    var results: [EventLog.Entry] = []
                    for (number, origin) in [(1, "network"), (2, "memory")] {
                        let id = "\(kind.name)-\(number)"
                        try await cluster.submit(#"{"id":"\#(id)",\#(fields)}"#)
                        let ready = try await cluster.events.terminal(of: id)
                        #expect(ready.kind == "ready", "\(id): \(ready.message)")
                        #expect(ready.origin == origin, "\(id)")
                        #expect(ready.json["subject"] as? String == kind.subject)
                        #expect(ready.variant["width"] as? Int == 20)
                        let source = ready.data["source"] as? [String: Any]
                        #expect(source?["format"] as? String == kind.format, "\(id)")
                        results.append(ready)
                    }
                    #expect(results[0].key == results[1].key)
                    #expect(results[0].variant["sha256"] as? String == results[1].variant["sha256"] as? String)
                    let kinds = cluster.events.all.filter { $0.jobID.hasPrefix("\(kind.name)-") }.map(\.kind)
                    #expect(kinds == ["started", "ready", "ready"], "\(kind.name)")
                    let body = try await cluster.client.send("HGET", .string(results[0].key), "body").bytes
                    #expect(body?.count == results[0].variant["bytes"] as? Int)
                }
                #expect(album.fetches.withLock { $0 } == 1)
                #expect(store.requests.count == 1)
                let keys = kinds.map { kind in cluster.events.terminal.first { $0.jobID == "\(kind.name)-1" }?.key }
                #expect(Set(keys).count == 7)

                // Events contain no password, whether of fetched or unsupported sources or of invalid jobs.
                for (id, fields, subject) in [
                    ("password", #""source":"http://u:secret@127.0.0.1:1/a""#, "http://****@127.0.0.1:1/a"),
                    (
                        "asset",
                        #""source":"initials:J","processors":[{"overlay":{"source":"http://u:secret@127.0.0.1:1/a"}}]"#,
                        "initials:J"
                    ),
                    ("scheme", #""source":"ftp://u:secret@e.org/a""#, "ftp://****@e.org/a"),
                    ("refused", #""source":"http://u:secret@e.org/a","width":-1"#, "http://****@e.org/a"),
                ] {
                    try await cluster.submit(#"{"id":"\#(id)",\#(fields)}"#)
                    let failed = try await cluster.events.terminal(of: id)
                    #expect(failed.kind == "failed" && failed.json["subject"] as? String == subject, "\(id)")
                    #expect(!failed.message.contains("secret") && !"\(failed.json)".contains("secret"), "\(id)")
                }

                // All kinds as overlays of one job.
                let overlays = kinds.map { #"{"overlay":{"source":\#($0.source),"opacity":0.5}}"# }
                try await cluster.submit(
                    #"{"id":"all","source":"initials:JD","width":20,"height":20,"processors":[\#(overlays.joined(separator: ","))]}"#
                )
                let all = try await cluster.events.terminal(of: "all")
                #expect(all.kind == "ready", "\(all.message)")

                for (id, source, code) in [
                    ("away", #""file:///etc/passwd""#, "forbidden"), ("unnamed", #""album:other""#, "invalid_job"),
                    ("unknown", #""gallery:1""#, "unsupported_source"), ("none", #""s3://pictures/none""#, "not_found"),
                    ("late", #"{"video":"file://\#(clip)","seconds":60}"#, "provider_error"),
                ] {
                    try await cluster.submit(#"{"id":"\#(id)","source":\#(source)}"#)
                    let failed = try await cluster.events.terminal(of: id)
                    #expect(failed.kind == "failed" && failed.code == code, "\(id): \(failed.message)")
                }
            }
        }
        await store.stop()
        await folder.remove()
    }
}
