import HalcyonCoding
import JSON
import ProgramSettings

/// Reads the jobs of a command line and validates all of them before any is sent.
///
/// Options override the fields of `--job`, and the fields in a line of `--from-file` override both.
struct JobList {
    private let arguments: ParsedCommand
    private let options: [FieldOption]
    private let reader: JobDecoder
    private let base: JobBuilder
    /// The random prefix of generated ids in this run.
    private let run = String(UInt64.random(in: 1 << 60 ... .max), radix: 16)
    private var jobs: [ValidatedJob] = []
    /// The ids as bytes, because equal Swift strings can have different bytes.
    private var ids: Set<[UInt8]> = []

    /// - Throws: ``InputError`` that names the option, or the file and line; ``FileError``.
    static func read(
        sources: [String], file: String?, options: [FieldOption], _ arguments: ParsedCommand, _ reader: JobDecoder
    ) async throws -> [ValidatedJob] {
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
            try list.add(JobBuilder(), from: nil)
        }
        guard !list.jobs.isEmpty else { throw InputError("\(file ?? ""): no jobs found") }
        if base["id"] != nil, list.jobs.count > 1 {
            throw InputError("an id can name only one job, and there are \(list.jobs.count)", of: arguments)
        }
        return list.jobs
    }

    /// Reads the jobs in the lines of a file with the fields of the options, without validating or naming them.
    /// - Throws: ``InputError`` that names the option, or the file and line; ``FileError``.
    static func drafts(
        file: String, options: [FieldOption], _ arguments: ParsedCommand, _ reader: JobDecoder
    ) async throws -> [(draft: JobBuilder, position: String)] {
        if file == "-", arguments[SizingOptions.job] == "-" {
            throw InputError("--job and FILE cannot both be standard input", of: arguments)
        }
        let template = try await SingleJob.template(arguments, reader)
        let base = template.overlaid(by: try options.draft(from: arguments, over: template))
        let list = JobList(arguments: arguments, options: options, reader: reader, base: base)
        var drafts: [(draft: JobBuilder, position: String)] = []
        try list.forEachLine(of: try await Files.read(file), from: file) { own, position in
            drafts.append((base.overlaid(by: own), position))
        }
        guard !drafts.isEmpty else { throw InputError("\(file): no jobs found") }
        return drafts
    }

    private init(arguments: ParsedCommand, options: [FieldOption], reader: JobDecoder, base: JobBuilder) {
        self.arguments = arguments
        self.options = options
        self.reader = reader
        self.base = base
    }

    private mutating func add(linesOf bytes: [UInt8], from file: String) throws {
        var drafts: [(JobBuilder, String)] = []
        try forEachLine(of: bytes, from: file) { drafts.append(($0, $1)) }
        for (draft, position) in drafts { try add(draft, from: position) }
    }

    /// Reads a URL or JSON object from each line. Empty lines and lines that begin with # are skipped.
    private func forEachLine(of bytes: [UInt8], from file: String, _ body: (JobBuilder, String) throws -> Void) throws {
        for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            let position = "\(file == "-" ? "standard input" : file):\(index + 1)"
            guard let text = String(validating: line, as: UTF8.self) else { throw InputError("\(position): not UTF-8") }
            let content = text.trimmed
            if content.isEmpty || content.hasPrefix("#") { continue }
            if content.hasPrefix("{") {
                let own: JobBuilder
                do throws(JSONError) {
                    own = try JobBuilder(json: Array(content.utf8), maximumSize: reader.maximumBytes)
                } catch {
                    throw InputError("\(position): \(error)")
                }
                try body(own, position)
            } else {
                var draft = JobBuilder()
                try draft.set(source: content)
                try body(draft, position)
            }
        }
    }

    private mutating func add(source: String, from position: String?) throws(InputError) {
        var draft = JobBuilder()
        try draft.set(source: source)
        try add(draft, from: position)
    }

    private mutating func add(_ own: JobBuilder, from position: String?) throws(InputError) {
        let madeUp = "\(run)-\(jobs.count + 1)"
        var draft = base.overlaid(by: own)
        if draft["id"] == nil { draft.set("id", madeUp) }
        do throws(InvalidJobError) {
            jobs.append(try ValidatedJob(draft, fallbackID: madeUp, by: reader).complaining())
        } catch {
            throw fault(options.translated(error.failure.message, arguments, under: own), position)
        }
        let id = jobs[jobs.count - 1].job.id
        guard ids.insert(Array(id.utf8)).inserted || base["id"] != nil else {
            throw fault("duplicate id \(id); each job needs a unique id", position)
        }
    }

    private func fault(_ message: String, _ position: String?) -> InputError {
        position.map { InputError("\($0): \(message)") } ?? InputError(message, of: arguments)
    }
}

extension String {
    /// The text without surrounding spaces, tabs and carriage returns.
    fileprivate var trimmed: String {
        let isSpace: (Character) -> Bool = { " \t\r".contains($0) }
        let start = drop(while: isSpace)
        return String(start[..<(start.lastIndex { !isSpace($0) }.map(start.index(after:)) ?? start.startIndex)])
    }
}
