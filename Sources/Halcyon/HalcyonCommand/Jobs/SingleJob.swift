import Arguments
import HalcyonModel
import HalcyonWire
import JSON

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
