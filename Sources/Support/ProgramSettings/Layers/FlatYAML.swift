import CYaml
import Formats

/// A setting in a file.
struct YAMLScalar: Equatable {
    /// The names on the path to it, joined by dots.
    let key: String
    /// The value; nil for `null`, `~` and an empty value.
    let value: ValueText?
    /// The line of its name, counted from 1.
    let line: Int
}

/// Reads a YAML document of mappings, scalars and lists of scalars. An empty mapping becomes an entry with an empty
/// list.
/// - Throws: ``SettingsError`` with the line, for anything else and for duplicate names.
func flatYAML(_ bytes: [UInt8], name: String) throws(SettingsError) -> [YAMLScalar] {
    let result = bytes.withUnsafeBufferPointer { bytes in
        Result { () throws(SettingsError) in
            var flattener = YAMLFlattener(name: name, bytes: bytes)
            return try flattener.read()
        }
    }
    return try result.get()
}

private struct YAMLFlattener: ~Copyable {
    private static let maximumDepth = 16

    private let name: String
    private var events: YAMLEvents
    private var entries: [YAMLScalar] = []
    private var lines: [String: Int] = [:]

    init(name: String, bytes: UnsafeBufferPointer<UInt8>) {
        self.name = name
        events = YAMLEvents(bytes)
    }

    mutating func read() throws(SettingsError) -> [YAMLScalar] {
        _ = try next()  // the stream's start
        let start = try next()
        guard start.kind == .documentStart else { return [] }  // nothing but comments
        let root = try next()
        switch root.kind {
        case .mappingStart: try readMapping("", depth: 1)
        case .scalar(let text, isPlain: true) where isNull(text): break
        default: throw fault(root, "expected settings as name: value")
        }
        _ = try next()  // the document's end
        let end = try next()
        if end.kind != .streamEnd { throw fault(end, "expected a single YAML document") }
        return entries
    }

    /// Reads a mapping whose start event has been consumed, up to and including its end.
    private mutating func readMapping(_ prefix: String, depth: Int) throws(SettingsError) {
        while true {
            let event = try next()
            if event.kind == .mappingEnd { return }
            guard case .scalar(let name, _) = event.kind, !name.isEmpty else { throw fault(event, "expected a name") }
            try readValue(of: prefix + name, line: event.line, depth: depth)
        }
    }

    private mutating func readValue(of key: String, line: Int, depth: Int) throws(SettingsError) {
        let event = try next()
        switch event.kind {
        case .scalar(let text, let isPlain):
            try add(key, isPlain && isNull(text) ? nil : .scalar(text), line)
        case .sequenceStart:
            try add(key, .list(try readList(key)), line)
        case .mappingStart:
            guard depth < Self.maximumDepth else { throw fault(event, "\(key): nested too deeply") }
            let count = entries.count
            try readMapping(key + ".", depth: depth + 1)
            if entries.count == count { try add(key, .list([]), line) }
        default: throw fault(event, "\(key): expected a value")
        }
    }

    private mutating func readList(_ key: String) throws(SettingsError) -> [String] {
        var items: [String] = []
        while true {
            let event = try next()
            if event.kind == .sequenceEnd { return items }
            guard case .scalar(let text, _) = event.kind else {
                throw fault(event, "\(key): a list may contain only plain values")
            }
            items.append(text)
        }
    }

    private mutating func add(_ key: String, _ value: ValueText?, _ line: Int) throws(SettingsError) {
        if let other = lines.updateValue(line, forKey: key) {
            throw SettingsError(.doubled, "\(key) is already set in line \(other)", .file(name, line: line))
        }
        entries.append(YAMLScalar(key: key, value: value, line: line))
    }

    private mutating func next() throws(SettingsError) -> YAMLEvents.Event {
        let event = events.next()
        switch event.kind {
        case .failed(let problem): throw fault(event, problem)
        case .alias: throw fault(event, "YAML aliases are not allowed")
        case .tagged: throw fault(event, "YAML tags are not allowed")
        default: return event
        }
    }

    private func fault(_ event: YAMLEvents.Event, _ message: String) -> SettingsError {
        SettingsError(.malformedFile, message, .file(name, line: event.line))
    }
}

/// True for the null values of YAML 1.2's core schema.
private func isNull(_ text: String) -> Bool { ["", "~", "null", "Null", "NULL"].contains(text) }

/// A stream of libyaml's events as values. The text must outlive it.
struct YAMLEvents: ~Copyable {
    struct Event {
        let kind: Kind
        /// The line, counted from 1.
        let line: Int
    }

    enum Kind: Equatable {
        case streamStart, streamEnd, documentStart, documentEnd
        case mappingStart, mappingEnd, sequenceStart, sequenceEnd
        case scalar(String, isPlain: Bool)
        case alias
        /// A value with an explicit tag such as `!!binary`.
        case tagged
        /// An error of libyaml, which is the last event.
        case failed(String)
    }

    private let parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)

    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        precondition(yaml_parser_initialize(parser) == 1, "no memory for libyaml")
        yaml_parser_set_input_string(parser, bytes.baseAddress, bytes.count)
    }

    deinit {
        yaml_parser_delete(parser)
        parser.deallocate()
    }

    mutating func next() -> Event {
        var event = yaml_event_t()
        guard yaml_parser_parse(parser, &event) == 1 else {
            let problem = parser.pointee.problem.map { String(cString: $0) } ?? "no memory"
            return Event(kind: .failed("not YAML: \(problem)"), line: parser.pointee.problem_mark.line + 1)
        }
        defer { yaml_event_delete(&event) }
        return Event(kind: kind(of: event), line: event.start_mark.line + 1)
    }

    private func kind(of event: yaml_event_t) -> Kind {
        switch event.type {
        case YAML_STREAM_START_EVENT: return .streamStart
        case YAML_DOCUMENT_START_EVENT: return .documentStart
        case YAML_DOCUMENT_END_EVENT: return .documentEnd
        case YAML_ALIAS_EVENT: return .alias
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            if scalar.tag != nil { return .tagged }
            let bytes = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
            return .scalar(String(decoding: bytes, as: UTF8.self), isPlain: scalar.style == YAML_PLAIN_SCALAR_STYLE)
        case YAML_SEQUENCE_START_EVENT: return event.data.sequence_start.tag == nil ? .sequenceStart : .tagged
        case YAML_SEQUENCE_END_EVENT: return .sequenceEnd
        case YAML_MAPPING_START_EVENT: return event.data.mapping_start.tag == nil ? .mappingStart : .tagged
        case YAML_MAPPING_END_EVENT: return .mappingEnd
        default: return .streamEnd
        }
    }
}
