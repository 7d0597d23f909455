import Glibc
import Subprocess
import TestSupport

/// The scripts beside the schemas, run over many values at once.
enum Python {
    /// Debian's own Python has Debian's jsonschema; another one that comes first in PATH may not.
    static let program = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3"

    /// Runs a script of `schemas/` over a file with one JSON value a line.
    /// - Returns: the line that it printed for each.
    static func run(_ script: String, _ arguments: [String] = [], over values: [[UInt8]]) async throws -> [String] {
        let folder = TemporaryFolder("wire")
        let input = folder.write(values.joined(separator: [UInt8(ascii: "\n")]), to: "values.ndjson")
        var options = ChildProcess.Options()
        let output = open(folder.write([], to: "output"), O_WRONLY)
        let errors = open(folder.write([], to: "errors"), O_WRONLY)
        options.output = .descriptor(output)
        options.errors = .descriptor(errors)
        let child = try await ChildProcess.start(
            program, [Repository.path("schemas/\(script)")] + arguments + [input], options: options)
        close(output)
        close(errors)
        let exit = await child.exit()
        let lines = String(decoding: folder.read("output"), as: UTF8.self).split(separator: "\n").map(String.init)
        let complaint = String(decoding: folder.read("errors"), as: UTF8.self)
        await folder.remove()
        guard exit == .code(0), lines.count == values.count else {
            throw ScriptFailure(
                description: "\(script) ended with \(exit), \(lines.count) lines for \(values.count): \(complaint)")
        }
        return lines
    }

    /// Whether each value follows the schema, and if not, why.
    static func validate(_ values: [[UInt8]], against schema: String) async throws -> [Verdict] {
        try await run("validate.py", [schema], over: values).map { Verdict(isValid: $0 == "valid", description: $0) }
    }

    struct Verdict: CustomStringConvertible {
        let isValid: Bool
        let description: String
    }

    struct ScriptFailure: Error, CustomStringConvertible {
        let description: String
    }
}
