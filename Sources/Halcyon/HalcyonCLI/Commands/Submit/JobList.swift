import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON
import ProgramSettings

/// Reads the jobs of a command line and validates all of them before any is sent.
///
/// Options override the fields of `--job`, and the fields in a line of `--from-file` override both.
struct JobList {
    private let arguments: ParsedCommand
    private let options: [FieldOption]
    private let configuration: Configuration
    private var reader: JobDecoder
    /// True if the decoder has the presets that are registered in Redis.
    private var hasPresets = false
    private let base: JobBuilder
    /// The random prefix of generated ids in this run.
    private let run = String(UInt64.random(in: 1 << 60 ... .max), radix: 16)
    private var jobs: [ValidatedJob] = []
    /// The ids as bytes, because equal Swift strings can have different bytes.
    private var ids: Set<[UInt8]> = []

    /// - Throws: ``InputError`` that names the option, or the file and line; ``FileError``.
    static func read(
        sources: [String], file: String?, options: [FieldOption], _ arguments: ParsedCommand,
        _ configuration: Configuration
    ) async throws -> [ValidatedJob] {
        if file == "-", arguments[SizingOptions.job] == "-" {
            throw InputError("--job and --from-file cannot both be standard input", of: arguments)
        }
        let template = try await SingleJob.template(arguments, configuration.jobReader)
        let base = template.overlaid(by: try options.draft(from: arguments, over: template))
        var list = JobList(arguments: arguments, options: options, configuration, base: base)
        for source in sources { try await list.add(source: source, from: nil) }
        if let file { try await list.add(linesOf: try await Files.read(file), from: file) }
        if sources.isEmpty, file == nil {
            guard base["source"] != nil else {
                throw InputError("nothing to submit: give a SOURCE, --from-file or --job", of: arguments)
            }
            try await list.add(JobBuilder(), from: nil)
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
        file: String, options: [FieldOption], _ arguments: ParsedCommand, _ configuration: Configuration
    ) async throws -> [(draft: JobBuilder, position: String)] {
        if file == "-", arguments[SizingOptions.job] == "-" {
            throw InputError("--job and FILE cannot both be standard input", of: arguments)
        }
        let template = try await SingleJob.template(arguments, configuration.jobReader)
        let base = template.overlaid(by: try options.draft(from: arguments, over: template))
        let drafts = try JobList(arguments: arguments, options: options, configuration, base: base)
            .lines(of: try await Files.read(file), from: file)
        guard !drafts.isEmpty else { throw InputError("\(file): no jobs found") }
        return drafts.map { (base.overlaid(by: $0.draft), $0.position) }
    }

    private init(
        arguments: ParsedCommand, options: [FieldOption], _ configuration: Configuration, base: JobBuilder
    ) {
        self.arguments = arguments
        self.options = options
        self.configuration = configuration
        reader = configuration.jobReader
        reader.requiresPreset = configuration.options.presetsOnly
        self.base = base
    }

    private mutating func add(linesOf bytes: [UInt8], from file: String) async throws {
        for (draft, position) in try lines(of: bytes, from: file) { try await add(draft, from: position) }
    }

    /// Reads a URL or JSON object from each line. Empty lines and lines that begin with # are skipped.
    private func lines(of bytes: [UInt8], from file: String) throws -> [(draft: JobBuilder, position: String)] {
        var drafts: [(draft: JobBuilder, position: String)] = []
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
                drafts.append((own, position))
            } else {
                var draft = JobBuilder()
                try draft.set(source: content)
                drafts.append((draft, position))
            }
        }
        return drafts
    }

    private mutating func add(source: String, from position: String?) async throws {
        var draft = JobBuilder()
        try draft.set(source: source)
        try await add(draft, from: position)
    }

    private mutating func add(_ own: JobBuilder, from position: String?) async throws {
        let madeUp = "\(run)-\(jobs.count + 1)"
        var draft = base.overlaid(by: own)
        if draft["id"] == nil { draft.set("id", madeUp) }
        do throws(InvalidJobError) {
            jobs.append(try ValidatedJob(draft, fallbackID: madeUp, by: reader).complaining())
        } catch {
            guard error.missingPreset != nil, !hasPresets else {
                throw fault(options.translated(error.failure.message, arguments, under: own), position)
            }
            reader.findPreset = try await configuration.readerWithRegisteredPresets().findPreset
            hasPresets = true
            return try await add(own, from: position)
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

/// Sends the jobs of a batch, with a progress bar.
struct BatchUpload {
    let writer: BatchWriter
    /// The webhook of the batch.
    let webhook: Webhook?

    /// A job of the batch.
    private struct Item {
        let index: Int
        let draft: JobBuilder
        /// The position of the job, for messages.
        let position: String
    }

    /// The number of jobs that are sent at once.
    private static let step = 1000

    /// Validates all jobs, and then sends them, numbered in their order.
    /// - Throws: ``InputError`` that names the line of an invalid job, `KafkaError`.
    func send(_ jobs: [(draft: JobBuilder, position: String)]) async throws {
        _ = try await send { perform in
            for first in stride(from: 0, to: jobs.count, by: Self.step) {
                let part = first..<min(first + Self.step, jobs.count)
                try await perform(part.map { Item(index: $0, draft: jobs[$0].draft, position: jobs[$0].position) })
            }
        }
    }

    /// Validates the jobs that failed in another batch, and then sends them, numbered like their failures. Their
    /// messages are read twice, so that only a slice of them is in memory.
    /// - Parameter bytes: The size of the messages in a slice.
    /// - Returns: The number of jobs that Kafka has not deleted. If there is none, nothing is sent.
    /// - Throws: ``InputError`` that names an invalid job, `KafkaError`, `CancellationError`.
    func send(
        _ failures: [BatchFailure], _ reader: FailedJobReader, bytes: Int = FailedJobSlices.defaultBytes
    ) async throws -> Int {
        try await send { perform in
            let slices = reader.slices(of: failures, bytes: bytes)
            try await closing({ await slices.close() }) {
                while let slice = try await slices.next() {
                    try await perform(slice.map { Item(index: $0.index, draft: $0.job, position: $0.failure.job) })
                }
            }
        }
    }

    /// Validates all jobs, and then sends them.
    /// - Parameter read: Passes all jobs to a closure, in any number of parts. It is called twice, because a million
    ///   validated jobs would need gigabytes.
    /// - Returns: The number of jobs sent.
    private func send(_ read: (_ perform: ([Item]) async throws -> Void) async throws -> Void) async throws -> Int {
        var total = 0
        try await read { items in
            for item in items { _ = try validated(item) }
            total += items.count
        }
        guard total > 0 else { return 0 }
        try await writer.open(created: Timestamp.now.milliseconds, webhook: webhook)
        let bar = ProgressBar()
        defer { bar.clear() }
        let start = ContinuousClock.now
        var sent = 0
        try await read { items in
            for first in stride(from: 0, to: items.count, by: Self.step) {
                let valid = try items[first..<min(first + Self.step, items.count)].map { try validated($0) }
                try await withThrowingTaskGroup(of: Void.self) { [writer] group in
                    for job in valid { group.addTask { try await writer.send(job) } }
                    try await group.waitForAll()
                }
                sent += valid.count
                bar.show(ended: sent, of: total, failures: 0, elapsed: start.duration(to: .now))
            }
        }
        try await writer.close(total: sent)
        return sent
    }

    private func validated(_ item: Item) throws(InputError) -> ValidatedJob {
        do throws(InvalidJobError) {
            return try writer.validated(item.draft, index: item.index)
        } catch {
            throw InputError("\(item.position): \(error.failure.message)")
        }
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
