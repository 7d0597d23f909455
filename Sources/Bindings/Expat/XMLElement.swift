import CExpat

/// An element of an XML document, parsed by Expat. Attributes, comments and processing instructions are ignored.
///
/// Expat does not load external entities, and limits how far internal ones expand.
public struct XMLElement: Hashable, Sendable {
    /// The name as written, including a namespace prefix.
    public let name: String
    /// The text directly in the element, without that of its children.
    public fileprivate(set) var text = ""
    /// The elements directly in the element, in order.
    public fileprivate(set) var children: [XMLElement] = []

    fileprivate init(name: String) { self.name = name }

    /// Parses a document.
    /// - Returns: its root element.
    /// - Throws: ``XMLError`` if the document is not well-formed, or nests more than 64 elements.
    public init(document: [UInt8]) throws(XMLError) {
        guard let parser = XML_ParserCreate(nil) else { preconditionFailure("Expat cannot allocate a parser") }
        defer { XML_ParserFree(parser) }
        let builder = Builder()
        // The builder outlives the parser, and Expat calls back only within XML_Parse.
        XML_SetUserData(parser, Unmanaged.passUnretained(builder).toOpaque())
        XML_SetElementHandler(
            parser, { data, name, _ in Builder.from(data).start(String(cString: name!)) },
            { data, _ in Builder.from(data).end() })
        XML_SetCharacterDataHandler(parser) { data, characters, count in
            Builder.from(data).add(UnsafeBufferPointer(start: characters, count: Int(count)))
        }
        let status = document.withUnsafeBytes { bytes in
            XML_Parse(parser, bytes.bindMemory(to: CChar.self).baseAddress, Int32(clamping: bytes.count), 1)
        }
        guard status == XML_STATUS_OK, document.count <= Int32.max else {
            let reason = XML_ErrorString(XML_GetErrorCode(parser)).map { String(cString: $0) } ?? "too large"
            throw XMLError(description: "line \(cexpat_line(parser)): \(reason)")
        }
        guard let root = builder.root else { throw XMLError(description: "the elements are nested too deeply") }
        self = root
    }

    /// The first child with a name; nil if there is none.
    public subscript(name: String) -> XMLElement? { children.first { $0.name == name } }
}

/// The error for a document that is not well-formed.
public struct XMLError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The line and the reason.
    public let description: String
}

/// Builds elements from the callbacks of a parser.
private final class Builder {
    private(set) var root: XMLElement?
    private var open: [XMLElement] = []
    private var depth = 0

    /// The maximum number of nested elements. Deeper ones make the document invalid.
    private static let mostNested = 64
    private var isTooDeep = false

    static func from(_ data: UnsafeMutableRawPointer?) -> Builder {
        Unmanaged<Builder>.fromOpaque(data!).takeUnretainedValue()
    }

    func start(_ name: String) {
        depth += 1
        isTooDeep = isTooDeep || depth > Self.mostNested
        if !isTooDeep { open.append(XMLElement(name: name)) }
    }

    func add(_ characters: UnsafeBufferPointer<CChar>) {
        guard !isTooDeep, !open.isEmpty else { return }
        characters.withMemoryRebound(to: UInt8.self) {
            open[open.count - 1].text += String(decoding: $0, as: UTF8.self)
        }
    }

    func end() {
        depth -= 1
        guard !isTooDeep, let element = open.popLast() else { return }
        if open.isEmpty { root = element } else { open[open.count - 1].children.append(element) }
    }
}
