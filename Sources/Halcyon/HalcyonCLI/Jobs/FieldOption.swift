import Formats
import HalcyonCoding
import JSON
import ProgramSettings

/// An option that sets a field of a job, such as `--content-mode` for `contentMode`.
struct FieldOption: Sendable {
    let parameter: any AnyParameter
    /// The option with its dashes.
    let spelling: String
    let field: String
    /// The member of the field that the option sets, or nil for the whole field.
    let member: String?
    /// The JSON of the field or of its member, or nil if the option is not given.
    let json: @Sendable (ParsedCommand) -> [UInt8]?

    /// Creates an option with a value.
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

    /// Creates a repeatable option. Its field is the list of all values in the given order.
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

    /// Creates a repeatable option. Its field is an object, and each value is a member of it.
    init(
        repeatedMember name: String, of field: String, _ kind: ValueKind<HeaderArgument>, as valueName: String,
        help: String
    ) {
        let option = Parameter<[HeaderArgument]>.repeated(name, kind, as: valueName, help: help)
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

    /// Creates a flag that sets the field, or one member of it, to `value`.
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

/// Options of job fields under a title of their own in the help.
struct FieldOptionGroup: Sendable {
    let title: String
    let fields: [FieldOption]

    init(_ title: String, _ fields: [FieldOption]) { (self.title, self.fields) = (title, fields) }

    /// The group of options for a command.
    var options: OptionGroup { OptionGroup(title, fields.map(\.parameter)) }

    /// Returns the group without the option of a field.
    func without(_ field: String) -> FieldOptionGroup { FieldOptionGroup(title, fields.filter { $0.field != field }) }
}

extension [FieldOptionGroup] {
    var fields: [FieldOption] { flatMap(\.fields) }
    var options: [OptionGroup] { map(\.options) }
}

extension [FieldOption] {
    /// Returns a job with the fields that the given options set.
    /// - Parameter base: the job that supplies the other members of a field if an option sets only one of them.
    /// - Throws: ``InputError`` if two options set the same field.
    func draft(from arguments: ParsedCommand, over base: JobBuilder = JobBuilder()) throws(InputError) -> JobBuilder {
        var draft = JobBuilder()
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

    /// Replaces the field name at the start of a message with the option that set the field.
    /// - Parameter own: the fields of the job itself, which take precedence over the options.
    func translated(_ message: String, _ arguments: ParsedCommand, under own: JobBuilder = JobBuilder()) -> String {
        for option in self where option.json(arguments) != nil && own[option.field] == nil {
            guard message.hasPrefix(option.field) else { continue }
            let rest = message.dropFirst(option.field.count)
            switch rest.first {
            case ":": return option.spelling + rest
            case ".": return "\(option.spelling): \(rest.dropFirst())"
            case "[":
                // Messages count from one.
                guard let end = rest.firstIndex(of: "]"), let place = Int(rest.dropFirst()[..<end]) else { continue }
                let detail = rest[end...].dropFirst().drop { ".: ".contains($0) }
                return "\(option.spelling) (number \(place + 1)): \(detail)"
            default: continue
            }
        }
        return message
    }
}

/// JSON from the command line.
struct JSONArgument: JSONWritable, Sendable {
    let element: JSONElement

    /// Parses the text. Returns nil if it is not JSON.
    init?(_ text: String) {
        // The caller reports what was expected.
        guard let element = try? JSON.parse(Array(text.utf8), maximumSize: 1 << 20) else { return nil }
        self.element = element
    }

    func write(to writer: inout JSONWriter) { writer.value(element) }
}

/// A header field from the command line: `NAME:VALUE`, optionally with spaces around the value.
struct HeaderArgument: Sendable {
    let name: String
    let value: String

    /// Splits the text at its first colon. Returns nil if there is none. The job decoder validates the rest.
    init?(_ text: String) {
        guard let colon = text.firstIndex(of: ":") else { return nil }
        name = String(text[..<colon])
        var value = text[colon...].dropFirst()
        while value.first == " " { value.removeFirst() }
        while value.last == " " { value.removeLast() }
        self.value = String(value)
    }
}

extension ValueKind<HeaderArgument> {
    static var header: Self { ValueKind("a header such as Accept:image/webp") { HeaderArgument($0) } }
}
