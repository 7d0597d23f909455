import JSON

/// The format of a log line.
public enum LogFormat: Sendable {
    /// One JSON object: `ts` (RFC 3339, UTC), `level`, `message`, then the fields. A field with one of those three
    /// names gets a trailing underscore.
    case json
    /// Human-readable: time of day in UTC, level, message, `name=value`.
    case text(isColoured: Bool)

    /// Returns the line, including the line break.
    public func line(_ record: LogRecord) -> [UInt8] {
        switch self {
        case .json: jsonLine(record)
        case .text(let isColoured): textLine(record, isColoured: isColoured)
        }
    }
}

private func jsonLine(_ record: LogRecord) -> [UInt8] {
    var writer = JSONWriter(capacity: 256)
    writer.object { writer in
        writer.member("ts", record.time.rfc3339)
        writer.member("level", record.level.rawValue)
        writer.member("message", record.message)
        for field in record.fields.pairs {
            let isTaken = field.name == "ts" || field.name == "level" || field.name == "message"
            writer.member(isTaken ? field.name + "_" : field.name, field.value)
        }
    }
    return writer.bytes + [UInt8(ascii: "\n")]
}

extension LogMetadata.Scalar: JSONWritable {
    /// Writes the value as its JSON type. A double that JSON cannot represent is written as a string.
    public func write(to writer: inout JSONWriter) {
        switch self {
        case .string(let string): writer.value(string)
        case .integer(let integer): writer.value(integer)
        case .double(let double) where double.isFinite: writer.raw(Array(double.decimal.utf8))
        case .double(let double): writer.value(double.description)
        case .bool(let bool): writer.value(bool)
        case .list(let list): list.write(to: &writer)
        }
    }
}

private func textLine(_ record: LogRecord, isColoured: Bool) -> [UInt8] {
    func coloured(_ text: String, _ code: String) -> String { isColoured ? "\u{1b}[\(code)m\(text)\u{1b}[0m" : text }
    let name = record.level.rawValue.uppercased()
    let padding = String(repeating: " ", count: 8 - name.count)
    var line = coloured(String(record.time.rfc3339.dropFirst(11).dropLast()), "2")
    line += " " + coloured(name, record.level.colour) + padding + " " + printable(record.message)
    for field in record.fields.pairs {
        line += " " + coloured(printable(field.name) + "=", "2") + text(field.value)
    }
    return Array(line.utf8) + [UInt8(ascii: "\n")]
}

private func text(_ value: LogMetadata.Scalar) -> String {
    switch value {
    case .string(let string):
        let isPlain = !string.isEmpty && !string.utf8.contains { $0 <= UInt8(ascii: " ") || $0 == UInt8(ascii: "\"") }
        return isPlain ? printable(string) : "\"" + printable(string, quote: true) + "\""
    case .integer(let integer): return integer.description
    case .double(let double): return double.decimal
    case .bool(let bool): return bool.description
    case .list(let list): return "[" + list.map(text).joined(separator: ",") + "]"
    }
}

/// Escapes control characters, so that external input cannot start a line, send commands to the terminal, or reorder or
/// hide adjacent text.
private func printable(_ text: String, quote: Bool = false) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\n": result += "\\n"
        case "\t": result += "\\t"
        case "\"" where quote: result += "\\\""
        case "\\" where quote: result += "\\\\"
        case _ where scalar.controls: result += "\\u{\(String(scalar.value, radix: 16))}"
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result
}

extension Unicode.Scalar {
    /// True if the character has no glyph: control and format characters, including those for text direction, and line
    /// and paragraph separators.
    fileprivate var controls: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}

extension Double {
    /// The shortest decimal that reads back as the same number, with zeros instead of a negative exponent.
    fileprivate var decimal: String {
        let parts = description.split(separator: "e-")
        guard parts.count == 2, let exponent = Int(parts[1]) else { return description }
        return (self < 0 ? "-0." : "0.") + String(repeating: "0", count: exponent - 1) + parts[0].filter(\.isNumber)
    }
}

extension LogLevel {
    /// The terminal's code for the level's color (ECMA-48, SGR).
    fileprivate var colour: String {
        switch self {
        case .trace, .debug: "2"
        case .info: "32"
        case .notice: "36"
        case .warning: "33"
        case .error: "31"
        case .critical: "1;31"
        }
    }
}
