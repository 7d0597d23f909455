import Concurrency
import Subprocess
import TestSupport
import Testing

/// The manual pages that the program hands out.
@Suite struct ManualTests {
    @Test func everyCommandHasAPageWithItsOptions() async throws {
        for command in CommandLineTests.commands {
            let name = "halcyon-" + command.split(separator: " ").joined(separator: "-")
            let page = try await Executable.run(["manual", name]).expect(0).output
            #expect(page.contains(".SH \"OPTIONS\"\n"), "\(name)")
            let help = try await Executable.run(command.split(separator: " ").map(String.init) + ["--help"]).output
            // An option begins its line of the help, perhaps after its letter.
            for line in help.split(separator: "\n") {
                guard let option = line.firstMatch(of: /^  (?:-\w, |    )(--[a-z-]+)/)?.1 else { continue }
                let escaped = option.split(separator: "-", omittingEmptySubsequences: false).joined(separator: "\\-")
                #expect(page.contains("\\fB\(escaped)\\fP"), "\(name) \(option)")
            }
        }
    }

    @Test func pagesAreWrittenInTheirSections() async throws {
        let folder = TemporaryFolder("manual")
        try await Executable.run(["manual", "--directory", "\(folder.path)/man"]).expect(0)
        for command in CommandLineTests.commands {
            let name = command.split(separator: " ").joined(separator: "-")
            #expect(!folder.read("man/man1/halcyon-\(name).1").isEmpty, "\(name)")
        }
        let main = Executable.text(folder.read("man/man1/halcyon.1"))
        #expect(main == (try await Executable.run(["manual"]).expect(0).output))
        #expect(main.contains("\n.TP\n\\fB70\\fP\nStuck worker.\n"))
        let settings = Executable.text(folder.read("man/man5/halcyon.yaml.5"))
        let known = try await Executable.run(["config", "--json"]).expect(0).json()
        #expect(known.count > 0)
        for name in ["kafka.brokers", "worker.grace", "redis.url", "sources.diskCache"] {
            #expect(settings.contains("\n\\fB\(name)\\fP\n"), "\(name)")
        }
        #expect(settings.contains("Variable: \\fBHALCYON_WORKER_GRACE\\fP\n"))
        await folder.remove()
    }

    @Test(
        .enabled(if: findExecutable("groff") != nil, "there is no groff; make deps-test installs it"),
        arguments: ["halcyon", "halcyon-render", "halcyon-plan", "halcyon-submit", "halcyon.yaml"])
    func groffHasNoWarnings(name: String) async throws {
        let lines = Lock<[String]>([])
        var options = ChildProcess.Options()
        options.errors = .lines { line in lines.withLock { $0.append(line) } }
        let script = #""$0" manual "$1" | groff -man -ww -Tutf8 >/dev/null"#
        let exit = try await ChildProcess.start(
            "/bin/sh", ["-c", script, HalcyonExecutable.path, name], options: options
        ).exit()
        #expect(exit == .code(0))
        #expect(lines.withLock { $0 } == [])
    }

    @Test func unknownPagesAreRejected() async throws {
        let run = try await Executable.run(["manual", "halcyon-sumbit"]).expect(2)
        #expect(run.errors.contains("no manual page 'halcyon-sumbit'; did you mean halcyon-submit?"))
        let both = try await Executable.run(["manual", "halcyon", "--directory", "/tmp"]).expect(2)
        #expect(both.errors.contains("--directory writes all pages; leave out PAGE"))
    }
}
