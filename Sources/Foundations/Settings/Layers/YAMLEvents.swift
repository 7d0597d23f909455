import CYaml

/// libyaml's events as values. The text must outlive it.
struct YAMLEvents: ~Copyable {
    struct Event {
        let kind: Kind
        /// Counted from 1.
        let line: Int
    }

    enum Kind: Equatable {
        case streamStart, streamEnd, documentStart, documentEnd
        case mappingStart, mappingEnd, sequenceStart, sequenceEnd
        case scalar(String, isPlain: Bool)
        case alias
        /// A value with an explicit tag such as `!!binary`.
        case tagged
        /// What libyaml says is wrong; no event comes after it.
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
