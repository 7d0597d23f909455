import Glibc
import HalcyonModel
import HalcyonWire
import JSON
import ProgramSettings
import Threads

/// What was given to a command and makes no sense.
struct InputError: Error, CustomStringConvertible {
    let description: String

    init(_ message: String) { description = message }

    /// An error that options of a command may mend.
    init(_ message: String, of arguments: ParsedCommand) {
        description = "\(message)\nsee '\(arguments.path.joined(separator: " ")) --help'"
    }
}

/// One job from a command line: for commands that need its key or its sizing and do not submit it.
enum SingleJob {
    /// - Parameters:
    ///   - source: what stands over the source of `--job`, if anything.
    ///   - options: those that stand over the other fields.
    /// - Throws: ``InputError``, ``FileError``.
    static func prepare(
        source: String?, options: [FieldOption] = SizingOptions.fields, _ arguments: ParsedCommand,
        _ configuration: Configuration
    ) async throws -> PreparedJob {
        let reader = configuration.jobReader
        var draft = try await template(arguments, reader).overlaid(by: try options.draft(from: arguments))
        if let source { try draft.set(source: source) }
        guard draft["source"] != nil else {
            throw InputError("SOURCE is missing: give a URL or initials:JD, or a job with --job", of: arguments)
        }
        do throws(JobRefusal) {
            return try PreparedJob(draft, fallbackID: "-", by: reader).complaining()
        } catch {
            throw InputError(options.translated(error.failure.message, arguments), of: arguments)
        }
    }

    /// The job that `--job` names; an empty one when it is not given.
    /// - Throws: ``InputError``, ``FileError``.
    static func template(_ arguments: ParsedCommand, _ reader: JobReader) async throws -> JobDraft {
        guard let path = arguments[SizingOptions.job] else { return JobDraft() }
        let bytes = try await Files.read(path, limit: reader.maximumBytes)
        do throws(JSONError) {
            return try JobDraft(json: bytes, maximumSize: reader.maximumBytes)
        } catch {
            throw InputError("\(path): \(error)")
        }
    }
}

extension PreparedJob {
    /// The same, after its user was told of fields that mean nothing.
    func complaining() -> PreparedJob {
        for warning in warnings { Console.complain("warning: \(warning), which workers ignore") }
        return self
    }
}

/// What is to be loaded, as a command line says it.
enum SourceArgument {
    /// For commands that take what workers load.
    static let help =
        "The URL of an image (https:, s3:, data:, file: on the worker's machine), initials:JD for an avatar, or JSON "
        + #"such as {"video": URL, "seconds": 1.5}"#

    /// What `render` is to read here itself.
    /// - Returns: the path, `-` for standard input, and the source that it is; nil for what is loaded as workers do it.
    /// - Throws: ``InputError`` for a file that cannot be named by a URL.
    static func localFile(_ text: String) async throws(InputError) -> (path: String, source: String)? {
        if text == "-" { return (text, standardInput) }
        if text.hasPrefix("{") { return nil }
        do throws(Failure) {
            let path = await blocking { canonicalPath(text) }
            if let scheme = Source.scheme(of: text), path == nil {
                return scheme == FileSource.scheme ? (try FileSource(text).path, text) : nil
            }
            // One that is not there is missed when it is read.
            return (text, try FileSource(path: path ?? "/\(text)").text)
        } catch {
            throw InputError("\(text): \(error.message)")
        }
    }

    /// Stands for what has no name.
    private static let standardInput = "data:,-"

    /// From the root on, without symbolic links; nil when nothing is there.
    private static func canonicalPath(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }
}

extension JobDraft {
    /// Sets the source to a text, or to the object that a text is.
    /// - Throws: ``InputError`` for what begins like an object and is no JSON.
    mutating func set(source text: String) throws(InputError) {
        guard text.hasPrefix("{") else { return set("source", text) }
        guard let object = GivenJSON(text) else { throw InputError("SOURCE begins with { and is no JSON: \(text)") }
        set("source", object)
    }
}
