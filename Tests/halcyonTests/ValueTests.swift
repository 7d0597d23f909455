import HalcyonCoding
import HalcyonModel
import JSON
import ProgramSettings
import Testing

@testable import HalcyonCLI

/// The pure values behind the commands.
@Suite struct ValueTests {
    @Test func everySettingHasAnExplanation() {
        let schema = ProgramOptions.schema
        #expect(schema.settings.filter(\.explanation.isEmpty).map(\.name) == [])
        #expect(schema.maps.filter(\.explanation.isEmpty).map(\.name) == [])
    }

    @Test func fileNamesComeFromURLsAndAreUnique() {
        let sources = [
            "https://example.org/a/cat.jpg?v=2", "https://example.org/b/cat.png#x", "https://example.org/cat-2.webp",
            "https://example.org", "https://example.org/..", "https://example.org/%2e%2e%2fetc",
            "https://example.org/.hidden.jpg",
            "https://example.org/ü/käse.jpg",
        ]
        #expect(
            FileNames.stems(of: sources) == [
                "cat", "cat-2", "cat-2-2", "image", "image-2", "_2e_2e_2fetc", "hidden", "k__se",
            ])
    }

    @Test func fileNamesComeFromPathsAndInitials() {
        let sources = ["pets/cat.jpg", "cat.png", "/a/b.c/what?.gif", "-", "initials:JD", "initials:Ä"]
        #expect(FileNames.stems(of: sources) == ["cat", "cat-2", "what_", "-", "initials_JD", "initials___"])
    }

    @Test func fileNamesOfVariantsHaveSizesAndAreUnique() {
        let sizes: [(Int, ImageFormat?)] = [(40, .jpeg), (40, .webp), (40, .jpeg), (20, .jpeg), (40, .jpeg), (40, nil)]
        let images = sizes.map { FileNames.Image(bytes: [], width: $0.0, height: 30, format: $0.1) }
        #expect(
            FileNames.names(of: images, stem: "cat") == [
                "cat-40x30.jpg", "cat-40x30.webp", "cat-40x30-2.jpg", "cat-20x30.jpg", "cat-40x30-3.jpg", "cat-40x30",
            ])
    }

    @Test func progressLineFitsTheTerminal() {
        let line = { ProgressBar.line(ended: 5, of: 10, failures: $0, elapsed: .milliseconds(3210), columns: $1) }
        #expect(line(0, 36) == "[##########           ] 5/10, 3.2 s")
        #expect(line(2, 120).hasSuffix("] 5/10, 2 failed, 3.2 s"))
        for columns in 1...200 { #expect(line(2, columns).count < max(2, columns)) }
    }

    @Test(
        arguments: [
            (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (12_345, "12.3 kB"), (99_949, "99.9 kB"), (99_950, "100 kB"),
            (999_499, "999 kB"), (999_500, "1.0 MB"), (5_000_000_000, "5.0 GB"), (5_000_000_000_000, "5000 GB"),
        ]) func formatsByteCounts(bytes: Int, text: String)
    {
        #expect(byteText(bytes) == text)
    }

    @Test func overlaysJobsFieldByField() throws {
        var draft = try JobBuilder(
            json: Array(#"{"width": 1, "source": "a", "x": {"y": [1, 2]}}"#.utf8), maximumSize: 1000)
        var other = JobBuilder()
        other.set("width", 2)
        other.set("format", "png")
        draft = draft.overlaid(by: other)
        #expect(
            String(decoding: draft.json, as: UTF8.self) == #"{"width":2,"source":"a","x":{"y":[1,2]},"format":"png"}"#)
        draft["x"] = nil
        #expect(draft["x"] == nil && draft["width"] == Array("2".utf8))
    }

    @Test(
        arguments: [
            ("maxmemory:0\r\nmaxmemory_policy:noeviction", .warning, "no limit"),
            ("maxmemory:1000\r\nmaxmemory_policy:noeviction", .warning, "no results can be stored"),
            ("maxmemory:1000\r\nmaxmemory_policy:allkeys-lru", .warning, "keys of other applications"),
            ("maxmemory:1000\r\nmaxmemory_policy:volatile-ttl", .ok, "policy volatile-ttl"),
        ] as [(String, DoctorReport.Level, String)])
    func doctorWarnsOfUnsuitableMemoryPolicies(info: String, level: DoctorReport.Level, message: String) {
        let findings = RedisInfo("# Memory\r\nused_memory:10\r\n\(info)\r\n").findings(at: "here")
        let memory = findings.first { $0.subject == "memory" }
        #expect(memory?.level == level && memory?.message.contains(message) == true)
        #expect((memory?.remedy == nil) == (level == .ok))
    }

    @Test func doctorReportsFailedNodesOfACluster() {
        let text = """
            a 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-5460 [7-<-b]
            b 10.0.0.2:7000@17000,name master,fail - 0 0 2 connected 5461-10922
            c 10.0.0.3:7000@17000 master - 0 0 3 connected 10923-16382 16383
            d 10.0.0.4:7000@17000 slave,fail? a 0 0 1 connected

            """
        let broken = ClusterNodes(text).findings
        #expect(broken.map(\.level) == [.broken, .warning, .warning])
        #expect(broken[0].message == "3 primary nodes, 1 replica, 10922 of 16384 slots served")
        #expect(broken[1].message.contains("primary at 10.0.0.2:7000"))
        #expect(broken[2].message.contains("replica at 10.0.0.4:7000"))
        let healthy = ClusterNodes(text.replacing(",fail?", with: "").replacing(",fail", with: "")).findings
        #expect(healthy.map(\.level) == [.ok])
    }

    @Test func threeReplicasRequireTwoInSync() {
        let plan = TopicPlan(topics: .init(), partitions: 12, replication: 3, folderRetention: 30 * 86_400)
        #expect(plan.topics.count == 18 && plan.topics.allSatisfy { $0.configuration["min.insync.replicas"] == "2" })
        #expect(plan.topics.last?.partitions == 1)
    }
}
