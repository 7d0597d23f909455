import Foundation
import HalcyonWorker
import Telemetry
import TestSupport
import Testing

/// Tenants and headers of source requests, with a complete worker: different requests share no cache entries.
@Suite(.limitedParallelism) struct RequestTests {
    private static func job(_ id: String, _ url: String, width: Int, _ members: String) -> String {
        #"{"id":"\#(id)","source":"\#(url)","width":\#(width)\#(members.isEmpty ? "" : ",")\#(members)}"#
    }

    @Test func tenantsShareNoCachedSources() async throws {
        try await CachePolicyTests.withOrigin { cluster, origin in
            var origins: [String?] = []
            for (index, tenant) in [nil, "a", "b", nil, "a", "b"].enumerated() {
                let members = tenant.map { #""tenant":"\#($0)""# } ?? ""
                try await cluster.submit(Self.job("\(index)", origin.url("/a"), width: 30 + index, members))
                origins.append(try await cluster.events.terminal(of: "\(index)").origin)
            }
            #expect(origins == ["network", "network", "network", "source-cache", "source-cache", "source-cache"])
            #expect(origin.requests.count == 3)
            // Each source is stored in the hash slot of its tenant's results.
            for entry in cluster.events.terminal {
                let slot = entry.key.prefix { $0 != "}" }
                #expect(try await cluster.client.send("EXISTS", .string("\(slot)}:source")).integer == 1)
            }
        }
    }

    @Test func tenantsShareNoCachedWatermarks() async throws {
        try await CachePolicyTests.withOrigin { cluster, origin in
            for (index, tenant) in ["a", "b", "a"].enumerated() {
                let mark = #""processors":[{"watermark":{"source":"\#(origin.url("/mark"))","widthFraction":0.2}}]"#
                try await cluster.submit(
                    Self.job("\(index)", origin.url("/\(index)"), width: 40, #""tenant":"\#(tenant)",\#(mark)"#))
                #expect(try await cluster.events.terminal(of: "\(index)").kind == "ready")
            }
            #expect(origin.requests.filter { $0.path == "/mark" }.count == 2)
        }
    }

    @Test func headersButNotTracingSeparateCacheEntries() async throws {
        try await CachePolicyTests.withOrigin { cluster, origin in
            let headers = [
                #"{"Accept":"image/webp"}"#, #"{"accept":"image/png"}"#, #"{"ACCEPT":"image/webp","traceparent":"00"}"#,
                #"{"Accept":"image/png","X-Request-ID":"7"}"#, "{}",
            ]
            var origins: [String?] = []
            for (index, headers) in headers.enumerated() {
                let job = Self.job("\(index)", origin.url("/a"), width: 30 + index, #""headers":\#(headers)"#)
                try await cluster.submit(job)
                origins.append(try await cluster.events.terminal(of: "\(index)").origin)
            }
            #expect(origins == ["network", "network", "source-cache", "source-cache", "network"])
            #expect(origin.requests.count == 3)
        }
    }

    /// Section 3.5 of RFC 9111.
    @Test func authorizedResponseIsCachedOnlyIfPublic() async throws {
        for (control, expected) in [("max-age=600", "network"), ("max-age=600, public", "source-cache")] {
            try await CachePolicyTests.withOrigin({ _ in control }) { cluster, origin in
                for width in [30, 31] {
                    let members = #""headers":{"Authorization":"Bearer s"}"#
                    try await cluster.submit(Self.job("\(width)", origin.url("/a"), width: width, members))
                    let ready = try await cluster.events.terminal(of: "\(width)")
                    #expect(ready.origin == (width == 30 ? "network" : expected))
                }
            }
        }
    }

    @Test func headersAppearInNoEventOrLog() async throws {
        let origin = RawOrigin { request in
            request.path == "/a" ? RawOrigin.answer("404 Not Found") : RawOrigin.answer("302 Found", ["Location: ::"])
        }
        let sink = RecordingLogSink()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(log: Log(level: .trace, sink: sink)) {
                for (id, path, value) in [("1", "/a", "secret"), ("2", "/b", "secret"), ("3", "/a", "secret\\n")] {
                    let members = #""headers":{"X-Key":"\#(value)"}"#
                    try await cluster.submit(Self.job(id, origin.url(path), width: 30, members))
                    _ = try await cluster.events.terminal(of: id)
                }
            }
            for entry in cluster.events.all { #expect(!"\(entry.json)".contains("secret")) }
        }
        // Jobs are logged after their events.
        try await until("all jobs are logged") { sink.count("job failed") == 2 && sink.count("job refused") == 1 }
        for record in sink.records { #expect(!"\(record)".contains("secret")) }
        try await origin.stop()
    }

    /// Log lines of failures name the source, but no credentials or signatures.
    @Test func failuresAreLoggedWithTheirRedactedSource() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("404 Not Found") }
        let sink = RecordingLogSink()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(log: Log(level: .info, sink: sink)) {
                let url = origin.url("/a?name=secret&X-Amz-Signature=secret")
                let signed = url.replacing("http://", with: "http://user:secret@")
                try await cluster.submit(Self.job("1", signed, width: 30, ""))
                try await cluster.submit(Self.job("2", "ftp://user:secret@example.org/a?b=secret", width: 30, ""))
                try await cluster.submit(
                    Self.job("3", origin.url("/") + String(repeating: "a", count: 2000), width: 30, ""))
                for id in ["1", "2", "3"] { _ = try await cluster.events.terminal(of: id) }
            }
        }
        // Jobs are logged after their events.
        func source(of job: String) async throws -> String {
            try await firstValue("the failure of \(job) is logged") {
                let record = sink.records.first { $0.fields["job"] == .string(job) && $0.fields["code"] != nil }
                guard case .string(let text) = record?.fields["source"] else { return nil }
                return text
            }
        }
        let shown = origin.url("/a?name=REDACTED&X-Amz-Signature=REDACTED")
        #expect(try await source(of: "1") == shown.replacing("http://", with: "http://****@"))
        #expect(try await source(of: "2") == "ftp://****@example.org/a?b=REDACTED")
        let long = try await source(of: "3")
        #expect(long.hasPrefix(origin.url("/a")) && long.utf8.count < 610)
        try await origin.stop()
    }
}
