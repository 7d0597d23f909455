import HalcyonWire
import JSON
import ProgramSettings

/// Reads the jobs of a command line: every one of them is checked before any is sent.
///
/// From the general to the particular: the fields of `--job`, over them those of the options, over them those of a line
/// of `--from-file`.
struct JobList {
    private let arguments: ParsedCommand
    private let options: [FieldOption]
    private let reader: JobReader
    private let base: JobDraft
    /// The beginning of the ids that are made up, different for each run.
    private let run = String(UInt64.random(in: 1 << 60 ... .max), radix: 16)
    private var jobs: [PreparedJob] = []
    /// By their bytes: equal strings of Swift may be different ids.
    private var ids: Set<[UInt8]> = []

    /// - Throws: ``InputError`` that names the option, or the file and the line; ``FileError``.
    static func read(
        sources: [String], file: String?, options: [FieldOption], _ arguments: ParsedCommand, _ reader: JobReader
    ) async throws -> [PreparedJob] {
        if file == "-", arguments[SizingOptions.job] == "-" {
            throw InputError("--job and --from-file cannot both be standard input", of: arguments)
        }
        let template = try await SingleJob.template(arguments, reader)
        let base = template.overlaid(by: try options.draft(from: arguments, over: template))
        var list = JobList(arguments: arguments, options: options, reader: reader, base: base)
        for source in sources { try list.add(source: source, from: nil) }
        if let file { try list.add(linesOf: try await Files.read(file), from: file) }
        if sources.isEmpty, file == nil {
            guard base["source"] != nil else {
                throw InputError("nothing to submit: give a SOURCE, --from-file or --job", of: arguments)
            }
            try list.add(JobDraft(), from: nil)
        }
        guard !list.jobs.isEmpty else { throw InputError("\(file ?? ""): there is no job in it") }
        if base["id"] != nil, list.jobs.count > 1 {
            throw InputError("an id names one job, and there are \(list.jobs.count)", of: arguments)
        }
        return list.jobs
    }

    private init(arguments: ParsedCommand, options: [FieldOption], reader: JobReader, base: JobDraft) {
        self.arguments = arguments
        self.options = options
        self.reader = reader
        self.base = base
    }

    /// URLs and JSON objects, one a line; empty lines and those that begin with # are passed over.
    private mutating func add(linesOf bytes: [UInt8], from file: String) throws {
        for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            let place = "\(file == "-" ? "standard input" : file):\(index + 1)"
            guard let text = String(validating: line, as: UTF8.self) else { throw InputError("\(place): not UTF-8") }
            let content = text.trimmed
            if content.isEmpty || content.hasPrefix("#") { continue }
            if content.hasPrefix("{") {
                let own: JobDraft
                do throws(JSONError) {
                    own = try JobDraft(json: Array(content.utf8), maximumSize: reader.maximumBytes)
                } catch {
                    throw InputError("\(place): \(error)")
                }
                try add(own, from: place)
            } else {
                try add(source: content, from: place)
            }
        }
    }

    private mutating func add(source: String, from place: String?) throws(InputError) {
        var draft = JobDraft()
        try draft.set(source: source)
        try add(draft, from: place)
    }

    private mutating func add(_ own: JobDraft, from place: String?) throws(InputError) {
        let madeUp = "\(run)-\(jobs.count + 1)"
        var draft = base.overlaid(by: own)
        if draft["id"] == nil { draft.set("id", madeUp) }
        do throws(JobRefusal) {
            jobs.append(try PreparedJob(draft, fallbackID: madeUp, by: reader).complaining())
        } catch {
            throw fault(options.translated(error.failure.message, arguments, under: own), place)
        }
        let id = jobs[jobs.count - 1].job.id
        guard ids.insert(Array(id.utf8)).inserted || base["id"] != nil else {
            throw fault("the id \(id) stands twice, and events of the two could not be told apart", place)
        }
    }

    private func fault(_ message: String, _ place: String?) -> InputError {
        place.map { InputError("\($0): \(message)") } ?? InputError(message, of: arguments)
    }
}

extension String {
    /// Without spaces, tabs and carriage returns around it.
    fileprivate var trimmed: String {
        let isSpace: (Character) -> Bool = { " \t\r".contains($0) }
        let start = drop(while: isSpace)
        return String(start[..<(start.lastIndex { !isSpace($0) }.map(start.index(after:)) ?? start.startIndex)])
    }
}
