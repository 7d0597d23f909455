import HalcyonModel
import JSON

// The rules by which a job with a preset is expanded. docs/presets.md describes them.
extension JobDecoder {
    /// Returns the fields of a job with a preset: those of the preset, overridden by those of the job.
    /// - Parameters:
    ///   - own: The fields of the job without the preset.
    ///   - preset: The preset.
    ///   - root: The message of the job.
    /// - Throws: ``JSONError`` if the job sets a field that the preset does not allow, or the template is invalid here.
    func expand(_ own: JobFields, _ preset: Preset, _ root: JSONElement) throws(JSONError) -> JobFields {
        var fields = JobFields(reader: self)
        do throws(JSONError) {
            try preset.job.forEachMember { name, value throws(JSONError) in try fields.read(name, value) }
        } catch {
            throw JSONError(
                error.code, "the preset \(preset.name) is not valid in this program: \(error)", path: "preset")
        }
        // Fields of a preset that a newer release has stored.
        let unknown = fields.unknown.map { "preset.\($0)" }
        try root.forEachGiven { name, value throws(JSONError) in
            if try allows(preset, name, value) { try fields.read(name, value) }
        }
        fields.unknown = own.unknown + unknown
        fields.expanded = PresetReference(preset.name, version: preset.version)
        return fields
    }

    /// Returns true if a field of the job is used, or false if it is unknown.
    /// - Throws: ``JSONError`` if the preset does not allow the field.
    private func allows(_ preset: Preset, _ name: JSONName, _ value: JSONElement) throws(JSONError) -> Bool {
        if JobFields.belongsToOneJob(name) { return true }
        let field = "\(name)"
        if preset.overridable.contains(field) { return true }
        if !JobFields.isOfTheJob(name) {
            var picture = VariantFields()
            guard try picture.read(name, value, self) else { return false }
        } else if field != "variants", !preset.sets(field) {
            return true
        }
        let allowed =
            preset.overridable.isEmpty
            ? "it has no overridable fields" : "it allows \(preset.overridable.joined(separator: ", "))"
        throw JSONError(.invalid, "cannot be set in a job with the preset \(preset.name); \(allowed)")
    }

    /// Returns true if a job belongs to a tenant by its own field or that of its preset.
    public func isJob(_ job: JobBuilder, of tenant: String) -> Bool {
        do throws(InvalidJobError) {
            return try read(job.json, defaultID: "-").job.tenant == tenant
        } catch {
            return job["tenant"] == tenant.json
        }
    }

    /// Validates a preset: its overridable fields exist, and its template is a valid job with any source.
    /// - Parameter preset: The preset.
    /// - Throws: ``InvalidPresetError``.
    public func check(_ preset: Preset) throws(InvalidPresetError) {
        var names = JobBuilder()
        for name in preset.overridable { names[name] = Array("null".utf8) }
        var fields = JobFields(reader: self)
        do throws(JSONError) {
            try JSON.parse(names.json, maximumSize: maximumBytes).forEachMember { name, value throws(JSONError) in
                guard !JobFields.belongsToOneJob(name) else {
                    throw JSONError(.invalid, "can be set in every job; remove it from the list")
                }
                try fields.read(name, value)
            }
        } catch {
            throw InvalidPresetError(preset.name, "overridable: \(error)")
        }
        if let name = fields.unknown.first {
            throw InvalidPresetError(preset.name, "overridable: \(name) is not a field of jobs")
        }
        var reader = self
        (reader.isStrict, reader.requiresPreset) = (true, false)
        var draft = JobBuilder()
        do throws(JSONError) {
            draft = try JobBuilder(json: preset.job.bytes, maximumSize: Preset.maximumBytes)
        } catch {
            throw InvalidPresetError(preset.name, "job: \(error)")
        }
        // The sources of jobs with this preset are not known here.
        draft.set("source", "https://example.org/image")
        do throws(InvalidJobError) {
            _ = try reader.read(draft.json, defaultID: "preset")
        } catch {
            throw InvalidPresetError(preset.name, "job.\(error.failure.message)")
        }
    }

    /// Decodes only the fields that belong to a single job, such as its id and source, and its times, tenant and
    /// webhook. They are needed to report, cancel and retry a job whose preset is not available.
    /// - Parameters:
    ///   - bytes: The message.
    ///   - defaultID: The id of a job that has none.
    /// - Returns: A job in the size of the source, without alternatives and a fallback picture.
    /// - Throws: ``InvalidJobError`` if one of these fields is invalid.
    public func readIdentity(_ bytes: [UInt8], defaultID: String) throws(InvalidJobError) -> DecodedJob {
        let root: JSONElement
        do throws(JSONError) {
            root = try JSON.parse(bytes, maximumSize: maximumBytes)
        } catch {
            throw InvalidJobError(JobError(error), read: self)
        }
        do throws(JSONError) {
            var fields = JobFields(reader: self)
            try root.forEachGiven { name, value throws(JSONError) in
                switch name {
                case "notBefore", "deadline", "tenant", "webhook": try fields.read(name, value)
                default: if JobFields.belongsToOneJob(name) { try fields.read(name, value) }
                }
            }
            var job = try fields.job(defaultID: defaultID)
            (job.alternatives, job.fallback) = ([], nil)
            return DecodedJob(job: job, unknownFields: [], lane: fields.lane)
        } catch {
            throw InvalidJobError(JobError(error), of: root, read: self)
        }
    }
}

extension JobBuilder {
    /// Creates a job that makes the results of another one with a preset again. It has those fields of the other job
    /// that affect its results, in the order of their names, so that equal jobs have equal JSON. It has no preset.
    ///
    /// Returns nil if the message is not a job, or if its request headers contain credentials.
    public init?(repeating message: [UInt8]) {
        self.init()
        var fields: [(name: String, json: [UInt8])] = []
        do throws(JSONError) {
            try JSON.parse(message, maximumSize: message.count).forEachGiven { name, value throws(JSONError) in
                switch name {
                case "source", "alternatives": fields.append(("\(name)", value.bytes))
                // What is delivered, when and to whom is the concern of the other job.
                case "delivery", "deadline", "webhook": break
                case "cache":
                    var cache = try JobBuilder(json: value.bytes, maximumSize: message.count)
                    (cache["reload"], cache["onlyIfCached"]) = (nil, nil)
                    fields.append(("\(name)", cache.json))
                case "headers":
                    try value.forEachMember { name, _ throws(JSONError) in
                        if Self.credentials.contains("\(name)".lowercased()) {
                            throw JSONError(.unsupported, "contains credentials")
                        }
                    }
                    fields.append(("\(name)", value.bytes))
                default: if !JobFields.belongsToOneJob(name) { fields.append(("\(name)", value.bytes)) }
                }
            }
        } catch {
            return nil
        }
        for field in fields.sorted(by: { $0.name < $1.name }) { self[field.name] = field.json }
    }

    /// The names of request headers with credentials, in lower case.
    private static let credentials: Set = ["authorization", "cookie", "proxy-authorization", "x-api-key"]
}

/// A preset that a job names, and that the decoder does not have.
public struct MissingPreset: Hashable, Sendable {
    /// The preset that the job names.
    public let reference: PresetReference
    /// The version that the decoder has, which is too old; nil if it has none.
    public let known: Int64?

    /// The error of a job with this preset.
    var error: JSONError {
        guard let known, let wanted = reference.version else {
            return JSONError(.invalid, "there is no preset \(reference.name)", path: "preset")
        }
        return JSONError(
            .invalid, "the preset \(reference.name) has the version \(known), and the job requires \(wanted) or newer",
            path: "preset")
    }
}
