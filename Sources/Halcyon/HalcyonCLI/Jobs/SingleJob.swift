import Concurrency
import Glibc
import HalcyonCoding
import HalcyonModel
import JSON
import ProgramSettings

/// Invalid input to a command.
struct InputError: Error, CustomStringConvertible {
    let description: String

    init(_ message: String) { description = message }

    /// Creates an error that refers to the help of the command.
    init(_ message: String, of arguments: ParsedCommand) {
        description = "\(message)\nsee '\(arguments.path.joined(separator: " ")) --help'"
    }
}

/// A job from the command line, for commands that need its key or its sizing but do not submit it.
enum SingleJob {
    /// - Parameters:
    ///   - source: the source that replaces the one of `--job`, if any.
    ///   - options: the options that override the other fields of `--job`.
    /// - Throws: ``InputError``, ``FileError``.
    static func prepare(
        source: String?, options: [FieldOption] = SizingOptions.fields, _ arguments: ParsedCommand,
        _ configuration: Configuration
    ) async throws -> ValidatedJob {
        var reader = configuration.jobReader
        var draft = try await template(arguments, reader).overlaid(by: try options.draft(from: arguments))
        if let source { try draft.set(source: source) }
        guard draft["source"] != nil else {
            throw InputError("SOURCE is missing; give a URL, initials:JD, or a job with --job", of: arguments)
        }
        do throws(InvalidJobError) {
            return try ValidatedJob(draft, fallbackID: "-", by: reader).complaining()
        } catch {
            guard error.missingPreset != nil else {
                throw InputError(options.translated(error.failure.message, arguments), of: arguments)
            }
        }
        reader = try await configuration.readerWithRegisteredPresets()
        do throws(InvalidJobError) {
            return try ValidatedJob(draft, fallbackID: "-", by: reader).complaining()
        } catch {
            throw InputError(options.translated(error.failure.message, arguments), of: arguments)
        }
    }

    /// Returns the job in the file of `--job`, or an empty job if the option is not given.
    /// - Throws: ``InputError``, ``FileError``.
    static func template(_ arguments: ParsedCommand, _ reader: JobDecoder) async throws -> JobBuilder {
        guard let path = arguments[SizingOptions.job] else { return JobBuilder() }
        let bytes = try await Files.read(path, limit: reader.maximumBytes)
        do throws(JSONError) {
            return try JobBuilder(json: bytes, maximumSize: reader.maximumBytes)
        } catch {
            throw InputError("\(path): \(error)")
        }
    }
}

extension ValidatedJob {
    /// Reports ignored fields on standard error and returns the job unchanged.
    func complaining() -> ValidatedJob {
        for warning in warnings { Console.complain("warning: \(warning); workers ignore it") }
        return self
    }
}

/// A source from the command line.
enum SourceArgument {
    /// The help for commands that accept the same sources as workers.
    static let help =
        "The URL of an image (https:, s3:, data:, or file: on the worker's machine), initials:JD for an avatar or JSON "
        + #"such as {"video": URL, "seconds": 1.5}"#

    /// Finds the local file that `render` reads itself.
    /// - Returns: the path (`-` for standard input) and the source for it, or nil for a source to load as workers do.
    /// - Throws: ``InputError`` for a file that cannot be expressed as a URL.
    static func localFile(_ text: String) async throws(InputError) -> (path: String, source: String)? {
        if text == "-" { return (text, standardInput) }
        if text.hasPrefix("{") { return nil }
        do throws(JobError) {
            let path = await blocking { canonicalPath(text) }
            if let scheme = Source.scheme(of: text), path == nil {
                return scheme == FileSource.scheme ? (try FileSource(text).path, text) : nil
            }
            // A missing file is reported when it is read.
            return (text, try FileSource(path: path ?? "/\(text)").text)
        } catch {
            throw InputError("\(text): \(error.message)")
        }
    }

    /// The placeholder source for standard input, which has no URL.
    private static let standardInput = "data:,-"

    /// Returns the absolute path without symbolic links, or nil if there is no such file.
    private static func canonicalPath(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }
}

extension JobBuilder {
    /// Sets the source to a string, or to a JSON object if the text begins with a brace.
    /// - Throws: ``InputError`` for text that begins with a brace but is not valid JSON.
    mutating func set(source text: String) throws(InputError) {
        guard text.hasPrefix("{") else { return set("source", text) }
        guard let object = JSONArgument(text) else { throw InputError("SOURCE is not valid JSON: \(text)") }
        set("source", object)
    }
}
