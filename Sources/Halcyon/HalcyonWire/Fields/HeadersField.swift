import HalcyonModel
import JSON

extension RequestHeaders {
    /// An object of texts.
    /// - Throws: ``JSONError`` that names the field and never says its value.
    init(_ value: JSONElement) throws(JSONError) {
        var fields: [Field] = []
        try value.forEachGiven { name, value throws(JSONError) in fields.append(Field("\(name)", try value.string())) }
        self = try checked { () throws(Failure) in try RequestHeaders(fields) }
    }

    /// Looks whether requests for the source have header fields at all that a job can add to.
    /// - Throws: ``JSONError`` where it is not loaded over HTTP.
    func check(for source: Source) throws(JSONError) {
        guard isEmpty || source.isLoadedOverHTTP else {
            throw JSONError(
                .invalid, "go with requests of http and https alone, and this source is loaded in another way",
                path: "headers")
        }
    }
}

extension Source {
    /// A store is asked over HTTP too, with headers that are signed and the store's own.
    fileprivate var isLoadedOverHTTP: Bool {
        switch self {
        case .web: true
        case .video(let video): video.input.isLoadedOverHTTP
        case .initials, .file, .data, .s3, .custom: false
        }
    }
}
