import Foundation
import JSON
import TestSupport
import Testing

/// `halcyon preset`, on a cluster of `halcyon dev`.
@Suite(.devCluster, .limitedParallelism) struct PresetCommandTests {
    private var cluster: DevClusterFixture { DevClusterFixture.current }

    @Test func registersPresetsForJobs() async throws {
        let card = #"{"job": {"width": 48, "format": "png"}, "overridable": ["quality"]}"#
        #expect(
            try await cluster.run("preset", "put", "card", "-", input: card).expect(0).output
                == "card: version 1 registered\n")
        #expect(
            try await cluster.run("preset", "put", "card", "-", "--json", input: card).expect(0).output
                == #"{"name":"card","version":1,"changed":false}"# + "\n")
        let shown = try await cluster.run("preset", "show", "card").expect(0).output
        #expect(
            shown
                == #"{"name":"card","version":1,"job":{"width":48,"format":"png"},"overridable":["quality"]}"# + "\n")
        let lines = try await cluster.run("preset", "list").expect(0).lines
        #expect(lines.contains { $0.hasPrefix("card  version 1  registered  {") })
        #expect(try await cluster.run("preset", "list", "--json").expect(0).output.contains(shown))
        #expect(try await cluster.run("preset", "show", "card", "--json").expect(0).output == shown)

        let ready = try await cluster.run("submit", "initials:P", "--preset", "card", "--wait", "--json").expect(0)
        #expect(ready.output.contains(#""width":48"#))
        let key = try await cluster.run("key", "initials:P", "--preset", "card").expect(0).output
        let plain = try await cluster.run("key", "initials:P", "--width", "48", "--format", "png").expect(0).output
        #expect(key == plain && !key.isEmpty)
        let line = #"{"source":"initials:Q","preset":"card","height":9}"#
        let refused = try await cluster.run("submit", "--from-file", "-", input: line).expect(2)
        #expect(refused.errors.contains("standard input:1: height: cannot be set in a job with the preset card"))

        #expect(try await cluster.run("preset", "delete", "card").expect(0).output == "card: deleted\n")
        #expect(try await cluster.run("preset", "delete", "card").expect(3).errors.contains("no registered preset"))
        #expect(try await cluster.run("preset", "show", "card").expect(3).output.isEmpty)
        let unknown = try await cluster.run("submit", "initials:P", "--preset", "card").expect(2)
        #expect(unknown.errors.contains("--preset: there is no preset card"))
        try await cluster.run("preset", "put", "card", "-", input: card).expect(0)
        let deleted = try await cluster.run("preset", "delete", "card", "--json").expect(0).output
        #expect(deleted == #"{"name":"card","deleted":true}"# + "\n")
    }

    @Test func makesTheResultsOfAPresetAgain() async throws {
        func put(_ width: Int) async throws {
            let json = #"{"job": {"width": \#(width), "height": 8, "maxAge": 600}}"#
            try await cluster.run("preset", "put", "again", "-", input: json).expect(0)
        }
        try await put(48)
        for letter in ["X", "Y"] {
            try await cluster.run("submit", "initials:\(letter)", "--preset", "again", "--tenant", letter, "--wait")
                .expect(0)
        }
        try await put(49)
        #expect(
            try await cluster.run("rerender", "--preset", "again", "--dry-run").expect(0).output == "again: 2 jobs\n")
        let counted = try await cluster.run(
            "rerender", "--preset", "again", "--dry-run", "--tenant", "X", "--json"
        ).expect(0)
        #expect(counted.output == #"{"preset":"again","jobs":1}"# + "\n")
        let run = try await cluster.run("rerender", "--preset", "again", "--id", "made-again", "--wait").expect(0)
        #expect(run.output == "made-again: completed, 2 of 2 jobs ended, 2 ready, 0 failed\n")
        try await cluster.run("purge", "--tenant", "X").expect(0)
        #expect(
            try await cluster.run("rerender", "--preset", "again", "--dry-run").expect(0).output == "again: 1 job\n")
        let named = try await cluster.run("rerender", "--preset", "again", "--id", "more").expect(0)
        #expect(named.output == "more: a worker lists the jobs of the preset again\n")
        #expect(try await cluster.run("rerender").expect(2).errors.contains("--preset"))
        #expect(try await cluster.run("rerender", "--preset", "none").expect(3).errors.contains("no preset none"))
    }

    @Test func refusesInvalidPresetsAndThoseOfTheSettings() async throws {
        let invalid = try await cluster.run("preset", "put", "bad", "-", input: #"{"job":{"widht":1}}"#).expect(2)
        #expect(invalid.errors.contains("standard input: job.widht: unknown field"))
        #expect(try await cluster.run("preset", "put", "a b", "-", input: "{}").expect(2).errors.contains("NAME"))
        let fixed = try await Executable.run(
            ["preset", "put", "fixed", "-"], input: #"{"job":{}}"#,
            environment: cluster.environment.merging(["HALCYON_PRESET_fixed": #"{"job":{"width":8}}"#]) { $1 }
        ).expect(1)
        #expect(fixed.errors.contains("the settings define it (presets.fixed)"))
        let old = try await cluster.run("preset", "put", "old", "-", input: #"{"job":{},"version":4}"#).expect(0)
        #expect(old.output == "old: version 4 registered\n")
        let lower = #"{"job":{"width":9},"version":3}"#
        #expect(
            try await cluster.run("preset", "put", "old", "-", input: lower).expect(1).errors.contains(
                "its last version is 4"))
    }
}

/// The settings `presets.NAME` and `presets.only`.
@Suite struct PresetSettingsTests {
    @Test func presetsAreJSONOrAFile() async throws {
        let folder = TemporaryFolder("presets")
        let file = "\(folder.path)/card.json"
        try Data(#"{"job": {"width": 64, "height": 48}}"#.utf8).write(to: URL(fileURLWithPath: file))
        let keys = try await ["--width 64 --height 48", "--preset card", "--preset file"].asyncMap { options in
            try await Executable.run(
                ["key", "initials:A"] + options.split(separator: " ").map { String($0) },
                environment: [
                    "HALCYON_PRESET_card": #" {"job": {"width": 64, "height": 48}}"#, "HALCYON_PRESET_file": file,
                    "HALCYON_PRESETS_ONLY": "true",
                ]
            ).expect(0).output
        }
        #expect(Set(keys).count == 1)
        await folder.remove()
    }

    @Test(arguments: [
        ("card", #"{"job":{"widht":1}}"#, "presets.card: job.widht: unknown field"),
        ("card", "{", "presets.card: "), ("card", #"{"width":1}"#, "presets.card: width: unknown member"),
        ("card", "/nowhere/card.json", "presets.card: expected JSON or the path of a file; cannot open /nowhere"),
        ("-card", #"{"job":{}}"#, "presets.-card: invalid name"),
    ])
    func anInvalidPresetStopsTheStart(name: String, value: String, message: String) async throws {
        for command in ["config", "worker", "gateway"] {
            let refused = try await Executable.run([command, "--set", "presets.\(name)=\(value)"]).expect(2)
            #expect(refused.errors.contains("halcyon: \(message)"), "\(refused.errors)")
        }
    }

    @Test func submitRequiresAPresetIfOnlyPresetsAreAccepted() async throws {
        let refused = try await Executable.run(["submit", "initials:A", "--set", "presets.only=true"]).expect(2)
        #expect(refused.errors.contains("preset: is missing: only jobs with a preset are accepted"))
    }
}

extension Sequence where Element: Sendable {
    fileprivate func asyncMap<Value>(_ body: (Element) async throws -> Value) async rethrows -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await body(element)) }
        return values
    }
}
