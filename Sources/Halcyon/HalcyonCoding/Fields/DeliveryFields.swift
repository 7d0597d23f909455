import HalcyonModel
import JSON

/// The delivery method of a job, as decoded before its variants are known.
enum DeliveryField {
    case method(Job.Delivery)
    /// The upload URL of each variant, by its label.
    case urls([String: WebURL])

    /// Decodes a delivery method: a name, or an object with the URL, the template or the URLs to upload to.
    init(_ value: JSONElement) throws(JSONError) {
        guard value.kind == .object else {
            self = .method(try value.choice(of: Job.Delivery.Word.allCases).delivery)
            return
        }
        var field: DeliveryField?
        try value.forEachGiven { name, value throws(JSONError) in
            switch name {
            case "put": field = try DeliveryField(targets: value)
            default: throw JSONError(.unknown, "unknown delivery method; expected \"put\"")
            }
        }
        guard let field else { throw JSONError(.missing, "expected {\"put\": URL}") }
        self = field
    }

    private init(targets value: JSONElement) throws(JSONError) {
        guard value.kind == .object else {
            let text = try value.string()
            self = .method(.put(try checked { () throws(JobError) in try UploadTargets(text) }))
            return
        }
        var urls: [String: WebURL] = [:]
        try value.forEachGiven { name, value throws(JSONError) in
            let text = try value.string()
            urls["\(name)"] = try checked { () throws(JobError) in try WebURL(secret: text) }
        }
        self = .urls(urls)
    }

    /// Returns the delivery method of a job.
    /// - Parameters:
    ///   - count: The number of variants.
    ///   - names: Their names; empty if no variant has a name.
    /// - Throws: ``JSONError``, which names the field but no URL, because URLs may be secrets.
    func delivery(of count: Int, _ names: [String?]) throws(JSONError) -> Job.Delivery {
        func label(_ index: Int) -> String { names.isEmpty ? "\(index)" : names[index] ?? "\(index)" }
        switch self {
        case .method(let method):
            if case .put(.urls) = method, count > 1 {
                throw JSONError(
                    .invalid,
                    "one URL for \(count) variants; add a placeholder such as {variant}, or give each variant a URL: "
                        + "{\"\(label(0))\": URL, …}", path: "put")
            }
            return method
        case .urls(let urls):
            let labels = (0..<count).map(label)
            if let other = urls.keys.sorted().first(where: { !labels.contains($0) }) {
                throw JSONError(
                    .invalid, "the job has no such variant; expected \(labels.joined(separator: ", "))",
                    path: "put.\(other)")
            }
            var ordered: [WebURL] = []
            var used: [String: String] = [:]
            for label in labels {
                guard let url = urls[label] else {
                    throw JSONError(.missing, "no URL for the variant \(label)", path: "put")
                }
                if let first = used.updateValue(label, forKey: url.canonical) {
                    throw JSONError(.invalid, "same URL as that of the variant \(first)", path: "put.\(label)")
                }
                ordered.append(url)
            }
            return .put(.urls(ordered))
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
