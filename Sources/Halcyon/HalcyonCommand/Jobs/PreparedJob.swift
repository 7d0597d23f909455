import Arguments
import HalcyonModel
import HalcyonWire
import JSON

/// A job as a message, which has been read and checked by the very reader that workers have.
struct PreparedJob: Sendable {
    let message: [UInt8]
    let job: Job
    /// One for each variant.
    let keys: [ResultKey]
    /// Where it is to be put, by the field `priority`.
    let lane: Lane

    /// - Parameter fallbackID: the id of a job that brings none.
    /// - Throws: ``JobRefusal``.
    init(_ draft: JobDraft, fallbackID: String, by reader: JobReader) throws(JobRefusal) {
        message = draft.json
        let reading = try reader.read(message, defaultID: fallbackID)
        for name in reading.unknownFields {
            Console.complain("warning: \(name) is no field of a job, and workers ignore it")
        }
        job = reading.job
        keys = reading.job.keys
        let word = draft["priority"].map { String(decoding: $0.dropFirst().dropLast(), as: UTF8.self) }
        lane = word.flatMap(Lane.init(rawValue:)) ?? .normal
    }
}

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
            return try PreparedJob(draft, fallbackID: "-", by: reader)
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
