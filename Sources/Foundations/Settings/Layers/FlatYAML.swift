import Values

/// One setting of a file.
struct FlatEntry: Equatable {
    /// The names on the way to it, joined by dots.
    let key: String
    /// Nil for `null`, `~` and nothing at all.
    let value: ValueText?
    /// Where its name stands, counted from 1.
    let line: Int
}

/// Reads a YAML document of mappings, scalars and lists of scalars. An empty mapping gives an entry with an empty list.
/// - Throws: ``SettingsError`` with the line, for anything else and for names that stand twice.
func flatYAML(_ bytes: [UInt8], name: String) throws(SettingsError) -> [FlatEntry] {
    let result = bytes.withUnsafeBufferPointer { bytes in
        Result { () throws(SettingsError) in
            var flattener = Flattener(name: name, bytes: bytes)
            return try flattener.read()
        }
    }
    return try result.get()
}

private struct Flattener: ~Copyable {
    private static let maximumDepth = 16

    private let name: String
    private var events: YAMLEvents
    private var entries: [FlatEntry] = []
    private var lines: [String: Int] = [:]

    init(name: String, bytes: UnsafeBufferPointer<UInt8>) {
        self.name = name
        events = YAMLEvents(bytes)
    }

    mutating func read() throws(SettingsError) -> [FlatEntry] {
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
        if end.kind != .streamEnd { throw fault(end, "a second document") }
        return entries
    }

    /// The start has been read already; reads up to and with the end.
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
            guard depth < Self.maximumDepth else { throw fault(event, "\(key): nested too deep") }
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
                throw fault(event, "\(key): a list may hold plain values only")
            }
            items.append(text)
        }
    }

    private mutating func add(_ key: String, _ value: ValueText?, _ line: Int) throws(SettingsError) {
        if let other = lines.updateValue(line, forKey: key) {
            throw SettingsError(.doubled, "\(key) stands already in line \(other)", .file(name, line: line))
        }
        entries.append(FlatEntry(key: key, value: value, line: line))
    }

    private mutating func next() throws(SettingsError) -> YAMLEvents.Event {
        let event = events.next()
        switch event.kind {
        case .failed(let problem): throw fault(event, problem)
        case .alias: throw fault(event, "an alias, which settings may not have")
        case .tagged: throw fault(event, "a tag, which settings may not have")
        default: return event
        }
    }

    private func fault(_ event: YAMLEvents.Event, _ message: String) -> SettingsError {
        SettingsError(.malformedFile, message, .file(name, line: event.line))
    }
}

/// The words for nothing of YAML 1.2's core schema.
private func isNull(_ text: String) -> Bool { ["", "~", "null", "Null", "NULL"].contains(text) }
