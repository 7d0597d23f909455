import Foundation
import HalcyonWorker
import Telemetry
import TestSupport
import Testing

/// For whom and with which headers a source is asked for, through a whole worker: what is kept of one request is no other's.
@Suite(.takesTurns) struct RequestTests {
    private static func job(_ id: String, _ url: String, width: Int, _ members: String) -> String {
        #"{"id":"\#(id)","source":"\#(url)","width":\#(width)\#(members.isEmpty ? "" : ",")\#(members)}"#
    }

    @Test func keptSourcesAreTheirTenantsOwn() async throws {
        try await CacheUseTests.with { stage, origin in
            var origins: [String?] = []
            for (index, tenant) in [nil, "a", "b", nil, "a", "b"].enumerated() {
                let members = tenant.map { #""tenant":"\#($0)""# } ?? ""
                try await stage.submit(Self.job("\(index)", origin.url("/a"), width: 30 + index, members))
                origins.append(try await stage.events.terminal(of: "\(index)").origin)
            }
            #expect(origins == ["network", "network", "network", "source-cache", "source-cache", "source-cache"])
            #expect(origin.requests.count == 3)
            // In the slot of the tenant's results, all of them.
            for entry in stage.events.terminal {
                let slot = entry.key.prefix { $0 != "}" }
                #expect(try await stage.client.send("EXISTS", .string("\(slot)}:source")).integer == 1)
            }
        }
    }

    @Test func tenantsShareNoWatermarkEither() async throws {
        try await CacheUseTests.with { stage, origin in
            for (index, tenant) in ["a", "b", "a"].enumerated() {
                let mark = #""processors":[{"watermark":{"source":"\#(origin.url("/mark"))","widthFraction":0.2}}]"#
                try await stage.submit(
                    Self.job("\(index)", origin.url("/\(index)"), width: 40, #""tenant":"\#(tenant)",\#(mark)"#))
                #expect(try await stage.events.terminal(of: "\(index)").kind == "ready")
            }
            #expect(origin.requests.filter { $0.path == "/mark" }.count == 2)
        }
    }

    @Test func headersTellRequestsApartAndTracingDoesNot() async throws {
        try await CacheUseTests.with { stage, origin in
            let headers = [
                #"{"Accept":"image/webp"}"#, #"{"accept":"image/png"}"#, #"{"ACCEPT":"image/webp","traceparent":"00"}"#,
                #"{"Accept":"image/png","X-Request-ID":"7"}"#, "{}",
            ]
            var origins: [String?] = []
            for (index, headers) in headers.enumerated() {
                let job = Self.job("\(index)", origin.url("/a"), width: 30 + index, #""headers":\#(headers)"#)
                try await stage.submit(job)
                origins.append(try await stage.events.terminal(of: "\(index)").origin)
            }
            #expect(origins == ["network", "network", "source-cache", "source-cache", "network"])
            #expect(origin.requests.count == 3)
        }
    }

    /// Section 3.5 of RFC 9111.
    @Test func whatWasGivenForAPasswordIsKeptWhereTheOriginAllowsIt() async throws {
        for (control, expected) in [("max-age=600", "network"), ("max-age=600, public", "source-cache")] {
            try await CacheUseTests.with({ _ in control }) { stage, origin in
                for width in [30, 31] {
                    let members = #""headers":{"Authorization":"Bearer s"}"#
                    try await stage.submit(Self.job("\(width)", origin.url("/a"), width: width, members))
                    let ready = try await stage.events.terminal(of: "\(width)")
                    #expect(ready.origin == (width == 30 ? "network" : expected))
                }
            }
        }
    }

    @Test func nobodyIsToldOfThem() async throws {
        let origin = RawOrigin { request in
            request.path == "/a" ? RawOrigin.answer("404 Not Found") : RawOrigin.answer("302 Found", ["Location: ::"])
        }
        let notes = Notes()
        try await Stage.with { stage in
            try await stage.withWorker(log: Log(level: .trace, sink: notes)) {
                for (id, path, value) in [("1", "/a", "secret"), ("2", "/b", "secret"), ("3", "/a", "secret\\n")] {
                    let members = #""headers":{"X-Key":"\#(value)"}"#
                    try await stage.submit(Self.job(id, origin.url(path), width: 30, members))
                    _ = try await stage.events.terminal(of: id)
                }
            }
            for entry in stage.events.all { #expect(!"\(entry.json)".contains("secret")) }
        }
        #expect(notes.count("job failed") == 2 && notes.count("job refused") == 1)
        for record in notes.records { #expect(!"\(record)".contains("secret")) }
        try await origin.stop()
    }
}
