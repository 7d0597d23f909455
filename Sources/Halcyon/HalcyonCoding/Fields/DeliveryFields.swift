import HalcyonModel
import JSON

extension JSONElement {
    /// Decodes a delivery method: a name, or an object with the URL to upload to.
    func delivery() throws(JSONError) -> Job.Delivery {
        guard kind == .object else { return try choice(of: Job.Delivery.Word.allCases).delivery }
        var url: WebURL?
        try forEachGiven { name, value throws(JSONError) in
            switch name {
            case "put": url = try value.target()
            default: throw JSONError(.unknown, "unknown delivery method; expected \"put\"")
            }
        }
        guard let url else { throw JSONError(.missing, "expected {\"put\": URL}") }
        return .put(url)
    }

    private func target() throws(JSONError) -> WebURL {
        let text = try string()
        do throws(JobError) {
            return try WebURL(secret: text)
        } catch {
            throw JSONError(.invalid, error.message)
        }
    }
}

extension CachePolicy {
    /// Decodes a cache policy.
    /// - Throws: ``JSONError``, which names the member.
    init(_ value: JSONElement) throws(JSONError) {
        self.init()
        var use = self
        try value.forEachGiven { name, value throws(JSONError) in
            switch name {
            case "memory": use.memory = try value.bool()
            case "store": use.store = try value.storeUse()
            case "source": use.source = try value.bool()
            case "reload": use.reload = try value.bool()
            case "onlyIfCached": use.onlyIfCached = try value.bool()
            default:
                throw JSONError(
                    .unknown, "unknown cache option; expected memory, store, source, reload or onlyIfCached")
            }
        }
        guard !use.reload || !use.onlyIfCached else {
            throw JSONError(.invalid, "reload and onlyIfCached cannot be combined")
        }
        guard use.memory || use.store != .required else {
            throw JSONError(.invalid, "\"required\" cannot be combined with memory false", path: "store")
        }
        self = use
    }
}

extension JSONElement {
    /// Decodes the use of the result store: true, false or `"required"`.
    fileprivate func storeUse() throws(JSONError) -> CachePolicy.StoreUse {
        guard kind == .string else { return try bool() ? .allowed : .excluded }
        guard try string() == "required" else {
            throw JSONError(.invalid, "expected true, false or \"required\"")
        }
        return .required
    }
}

extension RequestHeaders {
    /// Decodes an object of strings.
    /// - Throws: ``JSONError``, which names the field but never its value.
    init(_ value: JSONElement) throws(JSONError) {
        var fields: [Field] = []
        try value.forEachGiven { name, value throws(JSONError) in fields.append(Field("\(name)", try value.string())) }
        self = try checked { () throws(JobError) in try RequestHeaders(fields) }
    }

    /// Checks that the source supports header fields.
    /// - Throws: ``JSONError`` if there are fields and the source is not loaded over HTTP.
    func check(for source: Source) throws(JSONError) {
        guard isEmpty || source.isLoadedOverHTTP else {
            throw JSONError(
                .invalid, "supported only for http and https sources",
                path: "headers")
        }
    }
}

extension Source {
    /// True if jobs can add header fields. S3 objects are excluded, because their requests are signed.
    fileprivate var isLoadedOverHTTP: Bool {
        switch self {
        case .web: true
        case .video(let video): video.input.isLoadedOverHTTP
        case .initials, .file, .data, .s3, .custom: false
        }
    }
}

extension JSONElement {
    /// Decodes a webhook: a name or a URL.
    func webhook() throws(JSONError) -> Webhook {
        let text = try string()
        do throws(JobError) {
            return try Webhook(text)
        } catch {
            throw JSONError(.invalid, error.message)
        }
    }
}

extension JSONElement {
    /// Decodes a list of tags and removes duplicates.
    func tags() throws(JSONError) -> [String] {
        var tags: [String] = []
        var seen: Set<[UInt8]> = []
        var count = 0
        try forEachElement { element throws(JSONError) in
            guard count < Job.mostTags else { throw .tooMany(Job.mostTags) }
            count += 1
            let tag = try element.tag()
            // Tags are compared by bytes, as in Redis, not by Unicode equivalence.
            if seen.insert(Array(tag.utf8)).inserted { tags.append(tag) }
        }
        return tags
    }

    /// Decodes a tag.
    func tag() throws(JSONError) -> String {
        let tag = try string()
        guard Job.isTag(tag) else {
            throw JSONError(.invalid, "expected 1 to \(Job.longestTag) bytes without control characters")
        }
        return tag
    }

    /// Decodes the name of a display slot.
    func slotName() throws(JSONError) -> String {
        let name = try string()
        guard (1...Job.DisplaySlot.longestName).contains(name.utf8.count) else {
            throw JSONError(.invalid, "expected 1 to \(Job.DisplaySlot.longestName) bytes")
        }
        return name
    }
}
