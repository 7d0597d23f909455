import Formats
import HalcyonWire
import JSON
import ProgramSettings

/// An option that stands for a field of a job: `--content-mode` for `contentMode`.
struct FieldOption: Sendable {
    let parameter: any AnyParameter
    /// As it is typed, with its dashes.
    let spelling: String
    let field: String
    /// Which member of the field it sets; nil for the whole field.
    let member: String?
    /// The field's JSON, or its member's; nil when the option is not given.
    let json: @Sendable (ParsedCommand) -> [UInt8]?

    /// An option with a value.
    init<Value: JSONWritable & Sendable>(
        _ name: String, field: String? = nil, _ kind: ValueKind<Value>, as valueName: String, help: String
    ) {
        let option = Parameter<Value?>.option(name, kind, as: valueName, help: help)
        parameter = option
        spelling = "--\(name)"
        self.field = field ?? Self.camelCased(name)
        member = nil
        json = { $0[option]?.json }
    }

    /// An option that may be given again: its field is the list of all, in their order.
    init<Value: JSONWritable & Sendable>(
        repeated name: String, field: String, _ kind: ValueKind<Value>, as valueName: String, help: String
    ) {
        let option = Parameter<[Value]>.repeated(name, kind, as: valueName, help: help)
        parameter = option
        spelling = "--\(name)"
        self.field = field
        member = nil
        json = { $0[option].isEmpty ? nil : $0[option].json }
    }

    /// An option that may be given again: its field is an object, and each is one of its members.
    init(
        repeatedMember name: String, of field: String, _ kind: ValueKind<GivenHeader>, as valueName: String,
        help: String
    ) {
        let option = Parameter<[GivenHeader]>.repeated(name, kind, as: valueName, help: help)
        parameter = option
        spelling = "--\(name)"
        self.field = field
        member = nil
        json = { arguments in
            if arguments[option].isEmpty { return nil }
            return JSONWriter.object { writer in
                for header in arguments[option] { writer.member(header.name, header.value) }
            }
        }
    }

    /// A flag, which sets its field to `value`, or that member of it.
    init(flag name: String, field: String? = nil, member: String? = nil, sets value: Bool = true, help: String) {
        let flag = Parameter.flag(name, help: help)
        parameter = flag
        spelling = "--\(name)"
        self.field = field ?? Self.camelCased(name)
        self.member = member
        json = { $0[flag] ? value.json : nil }
    }

    private static func camelCased(_ name: String) -> String {
        let words = name.split(separator: "-")
        return words.dropFirst().reduce(into: String(words[0])) { $0 += $1.prefix(1).uppercased() + $1.dropFirst() }
    }
}

extension [FieldOption] {
    /// The fields that the given ones stand for.
    /// - Parameter base: what those that set a member leave the field's other members as.
    /// - Throws: ``InputError`` for two that say different things of one field.
    func draft(from arguments: ParsedCommand, over base: JobDraft = JobDraft()) throws(InputError) -> JobDraft {
        var draft = JobDraft()
        for option in self {
            guard let json = option.json(arguments) else { continue }
            if let member = option.member {
                draft[option.field] = draft[option.field] ?? base[option.field]
                draft.set(option.field, member, json)
                continue
            }
            if draft[option.field] != nil {
                let both = filter { $0.field == option.field && $0.json(arguments) != nil }.map(\.spelling)
                throw InputError("\(both.joined(separator: " and ")) contradict each other", of: arguments)
            }
            draft[option.field] = json
        }
        return draft
    }

    /// The same message with the option's name for a field that one of the given options has set.
    /// - Parameter own: fields that stand over those of the options.
    func translated(_ message: String, _ arguments: ParsedCommand, under own: JobDraft = JobDraft()) -> String {
        for option in self where option.json(arguments) != nil && own[option.field] == nil {
            guard message.hasPrefix(option.field) else { continue }
            let rest = message.dropFirst(option.field.count)
            switch rest.first {
            case ":": return option.spelling + rest
            case ".": return "\(option.spelling): \(rest.dropFirst())"
            case "[":
                // People count from one.
                guard let end = rest.firstIndex(of: "]"), let place = Int(rest.dropFirst()[..<end]) else { continue }
                let detail = rest[end...].dropFirst().drop { ".: ".contains($0) }
                return "\(option.spelling) (number \(place + 1)): \(detail)"
            default: continue
            }
        }
        return message
    }
}

/// JSON that was given as such.
struct GivenJSON: JSONWritable, Sendable {
    let element: JSONElement

    /// nil when the text is no JSON.
    init?(_ text: String) {
        // The caller says what was expected.
        guard let element = try? JSON.parse(Array(text.utf8), maximumSize: 1 << 20) else { return nil }
        self.element = element
    }

    func write(to writer: inout JSONWriter) { writer.value(element) }
}

/// A header field of a command line: `NAME:VALUE`, perhaps with spaces around the value.
struct GivenHeader: Sendable {
    let name: String
    let value: String

    /// nil where there is no colon. The reader of jobs checks the rest.
    init?(_ text: String) {
        guard let colon = text.firstIndex(of: ":") else { return nil }
        name = String(text[..<colon])
        var value = text[colon...].dropFirst()
        while value.first == " " { value.removeFirst() }
        while value.last == " " { value.removeLast() }
        self.value = String(value)
    }
}

extension ValueKind<GivenHeader> {
    static var header: Self { ValueKind("a header such as Accept:image/webp") { GivenHeader($0) } }
}
