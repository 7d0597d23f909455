import Foundation
import HalcyonModel
import Redis
import Telemetry
import TestSupport
import Testing

/// Cancelled and superseded jobs, with complete workers.
@Suite(.limitedParallelism) struct CancelTests {
    /// Returns an origin that starts a response and never completes it.
    static func stallingOrigin() -> RawOrigin {
        RawOrigin { _ in [.text("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc"), .awaitEnd] }
    }

    static func job(_ id: String, _ origin: RawOrigin, _ members: String = "") -> String {
        #"{"id":"\#(id)","source":"\#(origin.url("/a"))","width":64,"height":64\#(members)}"#
    }

    /// Expects exactly one terminal event for each of these jobs.
    static func expectOneTerminalEvent(_ cluster: WorkerFixture, of ids: String...) async throws {
        // Events of a later job are published after any further events of these jobs.
        let marker = #"{"id":"marker","source":"initials:M","width":8,"height":8}"#
        for _ in 0..<2 { try await cluster.submit(marker) }
        try await until("the marker jobs have ended") { cluster.events.terminal.count { $0.jobID == "marker" } == 2 }
        for id in ids { #expect(cluster.events.terminal.count { $0.jobID == id } == 1) }
    }

    /// Waits until this many workers are notified of newer generations. Earlier notifications are lost.
    static func waitForSubscriptions(_ count: Int, _ cluster: WorkerFixture) async throws {
        try await until("\(count) workers are subscribed") {
            let reply = try await cluster.client.send("PUBSUB", "NUMSUB", "halcyon:slots")
            return reply.array?.last?.integer == count
        }
    }

    @Test func jobCancelledBeforeDeliveryNeverStarts() async throws {
        let origin = Self.stallingOrigin()
        try await WorkerFixture.with { cluster in
            try await cluster.submit(Self.job("a", origin, #","metadata":7"#))
            try await cluster.publish(.cancel(.job("a")))
            try await cluster.withWorker {
                let end = try await cluster.events.terminal(of: "a")
                #expect(end.kind == "cancelled" && (end.data["job"] as? [String: Any])?["metadata"] as? Int == 7)
                #expect(end.json["id"] as? String == "halcyon.jobs-\(partition(of: end))-ended")
                #expect(origin.requests.isEmpty && cluster.events.all.allSatisfy { $0.kind != "started" })
                // The id can be reused.
                try await Task.sleep(for: .milliseconds(5))
                try await cluster.submit(#"{"id":"b","source":"initials:B","width":8,"height":8}"#)
                try await cluster.publish(.cancel(.job("b")))
                try await Task.sleep(for: .milliseconds(5))
                try await cluster.submit(#"{"id":"a","source":"initials:A","width":8,"height":8}"#)
                try await until("the second job ends") { cluster.events.terminal.filter { $0.jobID == "a" }.count == 2 }
                #expect(cluster.events.terminal.last { $0.jobID == "a" }?.kind == "ready")
            }
        }
        try await origin.stop()
    }

    @Test func everyTerminalEventNamesUnknownFields() async throws {
        let (origin, other) = (Self.stallingOrigin(), RawOrigin { _ in RawOrigin.answer("404 Not Found") })
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                try await Self.waitForSubscriptions(1, cluster)
                try await cluster.submit(Self.job("failed", other, #","widht":1"#))
                try await cluster.submit(Self.job("cancelled", origin, #","widht":1"#))
                try await cluster.submit(Self.job("superseded", origin, #","widht":1,"slot":"s","generation":1"#))
                try await cluster.submit(
                    #"{"id":"ready","source":"initials:R","width":8,"widht":1,"slot":"s","generation":2}"#)
                try await cluster.publish(.cancel(.job("cancelled")))
                for kind in ["ready", "failed", "cancelled", "superseded"] {
                    let end = try await cluster.events.terminal(of: kind)
                    let warnings = end.data["warnings"] as? [String]
                    #expect(end.kind == kind && warnings == [#"unknown field "widht""#])
                }
                #expect(cluster.events.all.allSatisfy { $0.isTerminal || $0.data["warnings"] == nil })
            }
        }
        try await origin.stop()
        try await other.stop()
    }

    private func partition(of end: EventLog.Entry) -> String {
        let parts = (end.json["id"] as? String ?? "").split(separator: "-")
        return parts.count == 4 ? "\(parts[1])-\(parts[2])" : "?"
    }

    @Test func cancellingTheLastJobAbortsTheTransfer() async throws {
        let origin = Self.stallingOrigin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.progressInterval = .milliseconds(100) }) {
                let ids = ["a", "b", "c"]
                for id in ids { try await cluster.submit(Self.job(id, origin)) }
                // Only a job that has joined the transfer has progress events.
                try await until("all jobs wait for the transfer") {
                    ids.allSatisfy { id in
                        cluster.events.all.contains { $0.jobID == id && $0.kind == "progress" }
                    }
                }
                try await cluster.publish(.cancel(.job("a")))
                #expect(try await cluster.events.terminal(of: "a").kind == "cancelled")
                // Other jobs still wait for the transfer.
                try await Task.sleep(for: .milliseconds(300))
                #expect(origin.cuts == 0)
                for id in ids.dropFirst() { try await cluster.publish(.cancel(.job(id))) }
                for id in ids.dropFirst() {
                    #expect(try await cluster.events.terminal(of: id).kind == "cancelled")
                }
                try await until("the transfer is aborted") { origin.cuts == 1 }
                #expect(origin.requests.count == 1)
                try await Self.expectOneTerminalEvent(cluster, of: "a", "b", "c")
            }
        }
        try await origin.stop()
    }

    @Test func cancellingWaitersKeepsTheSharedFetchRunning() async throws {
        let photograph = try SampleImages.bytes()
        let gate = Latch()
        defer { gate.open() }
        let origin = RawOrigin { _ in
            gate.wait()
            return RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"])
        }
        let metrics = (0..<2).map { _ in Metrics() }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorkers(2, metrics: metrics) { _ in
                // Sixteen jobs are on both partitions, and so on both workers.
                let ids = (0..<16).map { "\($0)" }
                for id in ids { try await cluster.submit(Self.job(id, origin)) }
                try await until("the transfer has started") { origin.requests.count == 1 }
                try await CoalescingTests.waitUntilJobsShare("result", jobs: 16, metrics)
                for id in ids.dropFirst(8) { try await cluster.publish(.cancel(.job(id))) }
                for id in ids.dropFirst(8) {
                    #expect(try await cluster.events.terminal(of: id).kind == "cancelled")
                }
                gate.open()
                for id in ids.prefix(8) {
                    #expect(try await cluster.events.terminal(of: id).kind == "ready")
                }
                #expect(origin.requests.count == 1 && origin.cuts == 0)
                try await Self.expectOneTerminalEvent(cluster, of: "0", "7", "8", "15")
            }
        }
        try await origin.stop()
    }

    /// This includes a generation that is announced after the older job has claimed its display slot and before it
    /// waits for anything.
    @Test func newerGenerationSupersedesAtAnyTime() async throws {
        let origin = Self.stallingOrigin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorkers(2) { _ in
                try await Self.waitForSubscriptions(2, cluster)
                let slots = 0..<400
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for slot in slots {
                        let claim = #","slot":"\#(slot)","generation"#
                        group.addTask { try await cluster.submit(Self.job("old \(slot)", origin, claim + #"":1"#)) }
                        group.addTask {
                            try await cluster.submit(
                                #"{"id":"new \#(slot)","source":"initials:N","width":8,"height":8\#(claim)":2}"#)
                        }
                    }
                    try await group.waitForAll()
                }
                try await until("all jobs have ended") { cluster.events.terminal.count == 2 * slots.count }
                for slot in slots {
                    #expect(try await cluster.events.terminal(of: "old \(slot)").kind == "superseded")
                    #expect(try await cluster.events.terminal(of: "new \(slot)").kind == "ready")
                }
            }
        }
        try await origin.stop()
    }

    @Test func newerGenerationSupersedesOlderOnesOnAllWorkers() async throws {
        let origin = Self.stallingOrigin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorkers(2) { _ in
                try await Self.waitForSubscriptions(2, cluster)
                func slot(_ generation: Int, _ more: String = "") -> String {
                    #","slot":"cell","generation":\#(generation)\#(more)"#
                }
                for number in 0..<8 { try await cluster.submit(Self.job("old \(number)", origin, slot(1))) }
                try await cluster.submit(Self.job("tenant", origin, slot(1, #","tenant":"t""#)))
                try await until("both fetches have started") { origin.requests.count == 2 }
                try await cluster.submit(
                    #"{"id":"new","source":"initials:N","width":8,"height":8,"slot":"cell","generation":2}"#)
                #expect(try await cluster.events.terminal(of: "new").kind == "ready")
                for number in 0..<8 {
                    let end = try await cluster.events.terminal(of: "old \(number)")
                    #expect(end.kind == "superseded" && end.data["supersededBy"] as? Int == 2)
                }
                try await until("the transfer without waiters is aborted") { origin.cuts == 1 }
                // An older generation that arrives late.
                try await cluster.submit(Self.job("late", origin, slot(1)))
                #expect(try await cluster.events.terminal(of: "late").kind == "superseded")
                // Equal generations do not supersede each other, and a stored result needs no waiting.
                try await cluster.submit(
                    #"{"id":"equal","source":"initials:N","width":8,"height":8,"slot":"cell","generation":2}"#)
                #expect(try await cluster.events.terminal(of: "equal").kind == "ready")
                #expect(!cluster.events.terminal.contains { $0.jobID == "tenant" })
                try await cluster.publish(.cancel(.job("tenant")))
                #expect(try await cluster.events.terminal(of: "tenant").kind == "cancelled")
                try await Self.expectOneTerminalEvent(cluster, of: "old 0", "old 7", "new", "late", "tenant")
            }
        }
        try await origin.stop()
    }
}
