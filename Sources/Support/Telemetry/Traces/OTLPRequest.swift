import JSON

/// The body of an export request: `ExportTraceServiceRequest` of OTLP 1 in the JSON mapping of OTLP/HTTP, in which
/// identifiers are hexadecimal, enumerations are numbers and 64-bit integers are strings.
struct OTLPRequest: JSONWritable {
    /// Attributes of the process.
    let resource: SpanAttributes
    /// The name and version of the instrumentation scope.
    let scope: (name: String, version: String)
    let spans: [Span]

    /// The encoded request.
    var bytes: [UInt8] {
        var writer = JSONWriter(capacity: 512 + spans.count * 512)
        write(to: &writer)
        return writer.bytes
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.name("resourceSpans")
            writer.array { writer in
                writer.object { writer in
                    writer.name("resource")
                    writer.object { $0.member("attributes", resource) }
                    writer.name("scopeSpans")
                    writer.array { writer in
                        writer.object { writer in
                            writer.name("scope")
                            writer.object { writer in
                                writer.member("name", scope.name)
                                writer.member("version", scope.version)
                            }
                            writer.member("spans", spans)
                        }
                    }
                }
            }
        }
    }
}

extension SpanAttributes: JSONWritable {
    /// Writes OTLP's list of `KeyValue`.
    public func write(to writer: inout JSONWriter) {
        writer.array { writer in
            for pair in pairs {
                writer.object { writer in
                    writer.member("key", pair.name)
                    writer.name("value")
                    writer.object { writer in
                        switch pair.value {
                        case .string(let text): writer.member("stringValue", text)
                        case .integer(let number): writer.member("intValue", String(number))
                        case .bool(let bool): writer.member("boolValue", bool)
                        }
                    }
                }
            }
        }
    }
}

extension Span: JSONWritable {
    /// Writes OTLP's `Span`.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("traceId", context.traceID)
            writer.member("spanId", context.spanID)
            writer.member("parentSpanId", parent?.spanID)
            writer.member("name", name)
            writer.member("kind", kind.rawValue)
            writer.member("startTimeUnixNano", String(start))
            writer.member("endTimeUnixNano", String(end))
            writer.member("attributes", attributes)
            if !links.isEmpty {
                writer.name("links")
                writer.array { writer in
                    for link in links {
                        writer.object { writer in
                            writer.member("traceId", link.traceID)
                            writer.member("spanId", link.spanID)
                        }
                    }
                }
            }
            if case .error(let reason) = status {
                writer.name("status")
                writer.object { writer in
                    writer.member("message", reason)
                    // STATUS_CODE_ERROR
                    writer.member("code", 2)
                }
            }
        }
    }
}
