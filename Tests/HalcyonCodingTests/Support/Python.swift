import Glibc
import Subprocess
import TestSupport

/// Runs the scripts of `schemas/` over many values at once.
enum Python {
    /// The interpreter. Debian's Python has Debian's jsonschema; another one in PATH may not.
    static let program = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3"

    /// Runs a script of `schemas/` over a file with one JSON value a line.
    /// - Returns: the line printed for each value.
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
        let errorOutput = String(decoding: folder.read("errors"), as: UTF8.self)
        await folder.remove()
        guard exit == .code(0), lines.count == values.count else {
            throw ScriptFailure(
                description: "\(script) ended with \(exit), \(lines.count) lines for \(values.count): \(errorOutput)")
        }
        return lines
    }

    /// Validates each value against a schema. The verdict on an invalid value contains the reason.
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
