import HalcyonModel
import JSON

extension JSONElement {
    /// How a result is handed over: a word, or where it is to be put.
    func delivery() throws(JSONError) -> Job.Delivery {
        guard kind == .object else { return try choice(of: Job.Delivery.Word.allCases).delivery }
        var url: WebURL?
        try forEachGiven { name, value throws(JSONError) in
            switch name {
            case "put": url = try value.target()
            default: throw JSONError(.unknown, "is no way to deliver: put")
            }
        }
        guard let url else { throw JSONError(.missing, "expected {\"put\": URL}") }
        return .put(url)
    }

    private func target() throws(JSONError) -> WebURL {
        let text = try string()
        do throws(Failure) {
            return try WebURL(secret: text)
        } catch {
            throw JSONError(.invalid, error.message)
        }
    }
}

extension CacheUse {
    /// - Throws: ``JSONError`` that names the member.
    init(_ value: JSONElement) throws(JSONError) {
        self.init()
        var use = self
        try value.forEachGiven { name, value throws(JSONError) in
            switch name {
            case "memory": use.memory = try value.bool()
            case "source": use.source = try value.bool()
            case "reload": use.reload = try value.bool()
            case "onlyIfCached": use.onlyIfCached = try value.bool()
            default: throw JSONError(.unknown, "is no use of a cache: memory, source, reload, onlyIfCached")
            }
        }
        guard !use.reload || !use.onlyIfCached else {
            throw JSONError(.invalid, "reload and onlyIfCached contradict each other")
        }
        self = use
    }
}

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

extension JSONElement {
    /// A webhook: a name or a URL.
    func webhook() throws(JSONError) -> Webhook {
        let text = try string()
        do throws(Failure) {
            return try Webhook(text)
        } catch {
            throw JSONError(.invalid, error.message)
        }
    }
}

extension JSONElement {
    /// A list of tags; those that stand there again are left out.
    func tags() throws(JSONError) -> [String] {
        var tags: [String] = []
        var seen: Set<[UInt8]> = []
        var count = 0
        try forEachElement { element throws(JSONError) in
            guard count < Job.mostTags else { throw .tooMany(Job.mostTags) }
            count += 1
            let tag = try element.tag()
            // Two spellings of one letter are two tags, as they are to Redis.
            if seen.insert(Array(tag.utf8)).inserted { tags.append(tag) }
        }
        return tags
    }

    /// One tag.
    func tag() throws(JSONError) -> String {
        let tag = try string()
        guard Job.isTag(tag) else {
            throw JSONError(.invalid, "expected 1 to \(Job.longestTag) bytes without control characters")
        }
        return tag
    }

    /// The name of a slot.
    func slotName() throws(JSONError) -> String {
        let name = try string()
        guard (1...Job.Slot.longestName).contains(name.utf8.count) else {
            throw JSONError(.invalid, "expected 1 to \(Job.Slot.longestName) bytes")
        }
        return name
    }
}
