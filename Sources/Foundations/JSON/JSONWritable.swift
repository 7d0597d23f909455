/// A value that knows how it is written as JSON: exactly one value, be it an object.
public protocol JSONWritable {
    /// Writes itself.
    func write(to writer: inout JSONWriter)
}

extension String: JSONWritable {
    /// As a JSON string.
    public func write(to writer: inout JSONWriter) { writer.value(self) }
}

extension Bool: JSONWritable {
    /// As `true` or `false`.
    public func write(to writer: inout JSONWriter) { writer.value(self) }
}

extension Double: JSONWritable {
    /// As a number; it must be finite.
    public func write(to writer: inout JSONWriter) { writer.value(self) }
}

extension Int: JSONWritable {
    /// As a number.
    public func write(to writer: inout JSONWriter) { writer.value(Int64(self)) }
}

extension Int64: JSONWritable {
    /// As a number.
    public func write(to writer: inout JSONWriter) { writer.value(self) }
}

extension UInt64: JSONWritable {
    /// As a number.
    public func write(to writer: inout JSONWriter) { writer.value(self) }
}

extension Array: JSONWritable where Element: JSONWritable {
    /// As an array.
    public func write(to writer: inout JSONWriter) {
        writer.array { writer in
            for element in self { element.write(to: &writer) }
        }
    }
}
