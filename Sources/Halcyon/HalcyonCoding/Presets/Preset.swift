import HalcyonModel
import JSON

/// A named template of jobs: the fields that a job with this preset has, and the fields that it may set itself. A pure
/// value.
///
/// The JSON is an object with the members `job`, `overridable` and optionally `name` and `version`:
///
///     {"job": {"width": 320, "height": 180, "format": "webp"}, "overridable": ["width"], "version": 3}
public struct Preset: Sendable {
    /// The maximum size of the JSON, in bytes.
    public static let maximumBytes = 64 << 10

    /// The name, by which jobs request the preset.
    public let name: String
    /// The version, from 1. A higher version is newer.
    public var version: Int64
    /// True if the JSON has a member `version`.
    public let hasOwnVersion: Bool
    /// The fields that the preset allows a job to set although they belong to the preset.
    public let overridable: [String]
    /// The fields of the job, as in a message.
    let job: JSONElement

    /// Decodes a preset. ``JobDecoder/check(_:)`` validates the fields of its job.
    /// - Parameters:
    ///   - name: The name of the preset.
    ///   - json: The JSON of the preset.
    /// - Throws: ``InvalidPresetError`` if the name or the JSON is invalid.
    public init(_ name: String, json: [UInt8]) throws(InvalidPresetError) {
        guard PresetReference.isName(name) else {
            throw InvalidPresetError(
                name,
                "invalid name; expected 1 to 64 letters, digits, dots, hyphens and underscores that begin with a letter "
                    + "or a digit, and not the reserved word only")
        }
        do throws(JSONError) {
            try self.init(name, JSON.parse(json, maximumSize: Self.maximumBytes))
        } catch {
            throw InvalidPresetError(name, "\(error)")
        }
    }

    private init(_ name: String, _ root: JSONElement) throws(JSONError) {
        var (job, version): (JSONElement?, Int64?)
        var overridable: [String] = []
        try root.forEachGiven { member, value throws(JSONError) in
            switch member {
            case "job": job = value
            case "overridable": overridable = try Self.overridable(value)
            case "version": version = try value.integer(in: 1...PresetReference.highestVersion)
            case "name":
                guard try value.string() == name else { throw JSONError(.invalid, "expected \"\(name)\"") }
            default:
                throw JSONError(.unknown, "unknown member; expected job, overridable, name or version")
            }
        }
        guard let job else {
            throw JSONError(.missing, "is missing: the fields that a job with this preset has", path: "job")
        }
        do throws(JSONError) {
            try job.forEachMember { field, _ throws(JSONError) in
                if JobFields.belongsToOneJob(field) {
                    throw JSONError(.invalid, "belongs to a single job and cannot be part of a preset")
                }
            }
        } catch {
            throw error.within("job")
        }
        self.name = name
        self.job = job
        self.overridable = overridable
        self.version = version ?? 1
        hasOwnVersion = version != nil
    }

    /// Decodes the names of overridable fields.
    private static func overridable(_ value: JSONElement) throws(JSONError) -> [String] {
        var names: [String] = []
        try value.forEachElement { element throws(JSONError) in
            let name = try element.string()
            guard !names.contains(name) else { throw JSONError(.doubled, "\(name) is listed twice") }
            names.append(name)
        }
        return names
    }

    /// The JSON without the name and the version. Two presets with equal contents stand for the same fields.
    public var contents: [UInt8] {
        var writer = JSONWriter(capacity: 256)
        writer.object { writeContents(to: &$0) }
        return writer.bytes
    }

    private func writeContents(to writer: inout JSONWriter) {
        writer.member("job", job)
        writer.name("overridable")
        writer.array { writer in
            for name in overridable { writer.value(name) }
        }
    }

    /// The tenant of the template; nil if it sets none.
    var tenant: JSONElement? { job.member("tenant")?.given }

    /// The webhook of the template; nil if it sets none.
    var webhook: JSONElement? { job.member("webhook")?.given }

    /// Returns true if the template sets a field.
    func sets(_ field: String) -> Bool { job.member(field)?.given != nil }
}

extension Preset: JSONWritable {
    /// Writes the preset with its name and version. The JSON can be decoded again.
    public func write(to writer: inout JSONWriter) {
        writer.object { writeMembers(to: &$0) }
    }

    /// Writes the members of the preset to an object that has further members.
    public func writeMembers(to writer: inout JSONWriter) {
        writer.member("name", name)
        writer.member("version", version)
        writeContents(to: &writer)
    }
}

extension PresetReference: JSONWritable {
    /// Writes an object with the name and the version.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("name", name)
            writer.member("version", version)
        }
    }

    /// Decodes the field `preset` of a job: a name, or an object with the name and the oldest permitted version.
    init(_ value: JSONElement) throws(JSONError) {
        guard value.kind == .object else {
            self.init(try Self.name(value))
            return
        }
        var (name, version): (String?, Int64?)
        try value.forEachGiven { member, value throws(JSONError) in
            switch member {
            case "name": name = try Self.name(value)
            case "version": version = try value.integer(in: 1...Self.highestVersion)
            default: throw JSONError(.unknown, "unknown member of a preset; expected name or version")
            }
        }
        guard let name else { throw JSONError(.missing, "is missing", path: "name") }
        self.init(name, version: version)
    }

    private static func name(_ value: JSONElement) throws(JSONError) -> String {
        let name = try value.string()
        guard isName(name) else {
            throw JSONError(
                .invalid,
                "expected the name of a preset: 1 to 64 letters, digits, dots, hyphens and underscores that begin with a "
                    + "letter or a digit, and not the reserved word only")
        }
        return name
    }
}

/// The error for an invalid preset.
public struct InvalidPresetError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name of the preset.
    public let name: String
    /// The problem, with the path of the invalid member.
    public let reason: String

    /// Creates the error.
    /// - Parameters:
    ///   - name: The name of the preset.
    ///   - reason: The problem, with the path of the invalid member.
    public init(_ name: String, _ reason: String) {
        self.name = name
        self.reason = reason
    }

    /// The name and the problem.
    public var description: String { "preset \(name): \(reason)" }
}
