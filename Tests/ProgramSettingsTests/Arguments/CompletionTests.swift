import Glibc
import ProgramSettings
import Subprocess
import Testing

@Suite struct CompletionTests {
    /// Runs a shell and returns its standard output, or nil if it fails.
    func output(of shell: String, _ arguments: [String]) async throws -> String? {
        var ends: [Int32] = [0, 0]
        precondition(pipe(&ends) == 0)
        var options = ChildProcess.Options()
        options.output = .descriptor(ends[1])
        options.errors = .inherited
        let child = try await ChildProcess.start(shell, arguments, options: options)
        close(ends[1])
        defer { close(ends[0]) }
        // The output of these scripts fits into the buffer of the pipe.
        guard await child.exit() == .code(0) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 65536)
        let count = read(ends[0], &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    /// Runs `body` with the path of a file that contains the text.
    func withFile<Result>(_ text: String, _ body: (String) async throws -> Result) async throws -> Result {
        var template = Array("/tmp/completion-XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { unlink(path) }
        let written = write(descriptor, text, text.utf8.count)
        close(descriptor)
        try #require(written == text.utf8.count)
        return try await body(path)
    }

    @Test(arguments: Shell.allCases) func scriptHasValidSyntaxInItsShell(shell: Shell) async throws {
        guard findExecutable(shell.rawValue) != nil else { return }
        let flag = Parameter.flag("no", help: "It isn't: \\ $x `y`.")
        let awkward = Command("is-it", summary: "Isn't it?", parameters: [flag])
        for program in [Example.program, awkward] {
            try await withFile(program.completionScript(for: shell)) { path in
                let printed = try await output(of: shell.rawValue, ["-n", path])
                #expect(printed != nil)
            }
        }
    }

    @Test(
        arguments: [
            (["prog", ""], ["submit", "dead", "--verbose", "--config", "--help", "--version"]),
            (["prog", "s"], ["submit"]),
            (["prog", "dead", ""], ["list", "show", "--help", "--verbose", "--config"]),
            (["prog", "-v", "dead", "sh"], ["show"]),
            (["prog", "submit", "--f"], ["--format"]),
            (["prog", "submit", "--format", ""], ["jpeg", "png"]),
            (["prog", "submit", "-f", "p"], ["png"]),
            (["prog", "submit", "--format", "="], ["jpeg", "png"]),
            (["prog", "submit", "--format", "=", "j"], ["jpeg"]),
            (["prog", "submit", "--width", ""], []),
            (["prog", "submit", "--config", "/etc/pass"], ["/etc/passwd", "/etc/passwd-"]),
            (["prog", "submit", "--output", "/et"], ["/etc"]),
            (["prog", "submit", "/etc/pass"], ["/etc/passwd", "/etc/passwd-"]),
            (["prog", "submit", "a", "--verb"], ["--verbose"]),
        ] as [([String], [String])]) func bashCompletesWords(words: [String], offers: [String]) async throws
    {
        let line = words.map { "'\($0)'" }.joined(separator: " ")
        let script =
            Example.program.completionScript(for: .bash) + """
                COMP_WORDS=(\(line)); COMP_CWORD=\(words.count - 1); _prog; printf '%s\\n' "${COMPREPLY[@]}"
                """
        let printed = try #require(try await output(of: "bash", ["--norc", "-c", script]))
        #expect(Set(printed.split(separator: "\n")) == Set(offers.map { $0[...] }))
    }

    @Test(
        .enabled(if: findExecutable("fish") != nil),
        arguments: [
            ("prog ", ["submit", "dead"]), ("prog s", ["submit"]), ("prog -v dead ", ["list", "show"]),
            ("prog submit --fo", ["--format"]), ("prog submit --format ", ["jpeg", "png"]),
            ("prog submit -c /etc/passw", ["/etc/passwd", "/etc/passwd-"]),
            ("prog dead --v", ["--verbose"]), ("prog --v", ["--verbose", "--version"]),
        ] as [(String, [String])]) func fishCompletesWords(line: String, offers: [String]) async throws
    {
        try await withFile(Example.program.completionScript(for: .fish)) { path in
            let printed = try await output(of: "fish", ["--no-config", "-c", "source \(path); complete -C '\(line)'"])
            let words = try #require(printed).split(separator: "\n").map { $0.split(separator: "\t")[0] }
            #expect(Set(words.map(String.init)) == Set(offers))
        }
    }

    @Test(arguments: Shell.allCases) func scriptContainsEveryCommandAndOption(shell: Shell) {
        let script = Example.program.completionScript(for: shell)
        let dashes = shell == .fish ? "" : "--"
        for word in ["submit", "dead", "list", "show"] + ["verbose", "config", "tag", "version"].map({ dashes + $0 }) {
            #expect(script.contains(word))
        }
    }
}
