import Formats
import HalcyonModel
import JSON

/// The fields of a job message. Each field is validated on its own; ``job(defaultID:)`` validates their combination.
struct JobFields {
    let reader: JobDecoder
    var id: String?
    var source: Source?
    var alternatives: [Source] = []
    var fallback = FallbackField.standard
    /// The defaults of all variants, and the only output of a job without `variants`.
    var defaults = VariantFields()
    var variants: JSONElement?
    /// The names of the variants; empty if no variant has a name.
    var names: [String?] = []
    var partial = false
    var maxAge = 0.0
    var cache = CachePolicy()
    var tenant: String?
    var headers = RequestHeaders()
    var tags: [String] = []
    var slot: String?
    var generation: Int64?
    var delivery = DeliveryField.method(.reference)
    var isPrefetch = false
    var refresh: Job.Refresh?
    var notBefore: Job.Time?
    var deadline: Job.Time?
    var batch: BatchMembership?
    var webhook: Webhook?
    var lane: Lane?
    var echo = Job.PassthroughMetadata()
    var unknown: [String] = []
    /// The preset that the job names.
    var preset: PresetReference?
    /// The preset whose fields are included.
    var expanded: PresetReference?

    /// The maximum number of outputs of a job.
    static let mostVariants = 16

    init(reader: JobDecoder) {
        self.reader = reader
    }

    mutating func read(_ name: JSONName, _ value: JSONElement) throws(JSONError) {
        guard !value.isNull else {
            if try !defaults.read(name, value, reader), !Self.isOfTheJob(name) { unknown.append("\(name)") }
            return
        }
        switch name {
        case "id": id = try Self.id(value)
        case "source": source = try reader.source(value)
        case "variants": variants = value
        case "maxAge": maxAge = try value.double()
        case "delivery": delivery = try DeliveryField(value)
        case "prefetch": isPrefetch = try value.bool()
        case "refresh": refresh = try Job.Refresh(value)
        case "notBefore": notBefore = try reader.start(value)
        case "deadline": deadline = try Job.Time(value)
        case "metadata": echo.metadata = try Self.echoed(value)
        case "placeholder": echo.placeholder = try Self.echoed(value)
        case "altText": echo.altText = try Self.echoed(value)
        case "priority": lane = try value.choice(of: Lane.allCases)
        default:
            if try !defaults.read(name, value, reader), try !readRare(name, value) { unknown.append("\(name)") }
        }
    }

    /// Decodes a rarely used field. Names are compared sequentially, so these are compared last.
    /// - Returns: True if `name` is such a field.
    private mutating func readRare(_ name: JSONName, _ value: JSONElement) throws(JSONError) -> Bool {
        switch name {
        case "partial": partial = try value.bool()
        case "alternatives": alternatives = try Self.alternatives(value, reader)
        case "fallback": fallback = try FallbackField(value, reader)
        case "cache": cache = try CachePolicy(value)
        case "tenant": tenant = try Self.tenant(value)
        case "headers": headers = try RequestHeaders(value)
        case "tags": tags = try value.tags()
        case "slot": slot = try value.slotName()
        case "generation": generation = try value.integer(in: 0...Job.DisplaySlot.highestGeneration)
        case "batch": batch = try BatchMembership(value)
        case "webhook": webhook = try value.webhook()
        case "preset": preset = try PresetReference(value)
        default: return false
        }
        return true
    }

    /// Returns true if `name` is a field of the job, not of its variants.
    static func isOfTheJob(_ name: JSONName) -> Bool {
        switch name {
        case "variants", "maxAge", "delivery", "prefetch", "refresh", "notBefore", "deadline", "partial", "fallback",
            "cache", "tenant", "headers", "tags", "webhook":
            true
        default: belongsToOneJob(name)
        }
    }

    /// Returns true if `name` is a field that identifies a single job or its source. Presets cannot contain it, and
    /// every job may set it.
    static func belongsToOneJob(_ name: JSONName) -> Bool {
        switch name {
        case "id", "source", "alternatives", "preset", "slot", "generation", "metadata", "placeholder", "altText",
            "priority", "batch":
            true
        default: false
        }
    }

    mutating func job(defaultID: String) throws(JSONError) -> Job {
        guard let source else { throw JSONError(.missing, "is missing: say what to load", path: "source") }
        try headers.check(for: source)
        guard slot != nil || generation == nil else {
            throw JSONError(.invalid, "requires a slot", path: "generation")
        }
        var variants = try outputs()
        let delivery: Job.Delivery
        do throws(JSONError) {
            delivery = try self.delivery.delivery(of: variants.count, names)
        } catch {
            throw error.within("delivery")
        }
        var fallback = try fallback.source(standard: reader.fallback, delivery)
        // The facts about another picture would be misleading, unless the job asks for them.
        if case .standard = self.fallback, variants.allSatisfy({ $0.info != nil }) { fallback = nil }
        try checkRefresh()
        if isPrefetch {
            try checkPrefetch(delivery)
            (variants, names, fallback) = ([], [], nil)
        }
        return Job(
            id: id ?? defaultID, source: source, alternatives: alternatives, fallback: fallback, variants: variants,
            names: names,
            partial: partial, maxAge: maxAge, cache: cache, tenant: tenant, headers: headers, tags: tags,
            slot: slot.map { Job.DisplaySlot(name: $0, generation: generation) },
            delivery: delivery, isPrefetch: isPrefetch, refresh: refresh, notBefore: notBefore, deadline: deadline,
            batch: batch, webhook: webhook, echo: echo, preset: expanded)
    }

    /// Checks that a prefetch can store its source and has no result to deliver.
    private func checkPrefetch(_ delivery: Job.Delivery) throws(JSONError) {
        guard delivery == .reference else {
            throw JSONError(.invalid, "excludes delivery, because no image is rendered", path: "prefetch")
        }
        guard cache.source, !cache.onlyIfCached else {
            throw JSONError(.invalid, "requires cache.source, and excludes cache.onlyIfCached", path: "prefetch")
        }
    }

    /// Checks that there are stored results to refresh.
    private func checkRefresh() throws(JSONError) {
        guard refresh != nil else { return }
        guard !isPrefetch else { throw JSONError(.invalid, "excludes prefetch", path: "refresh") }
        guard cache.memory, maxAge >= 0, !cache.onlyIfCached else {
            throw JSONError(
                .invalid,
                "requires that results are stored: it excludes cache.memory: false, cache.onlyIfCached and a "
                    + "negative maxAge", path: "refresh")
        }
    }

    private mutating func outputs() throws(JSONError) -> [Variant] {
        guard let variants else { return [try defaults.variant(reader)] }
        try defaults.checkSizer()
        do throws(JSONError) {
            return try outputs(of: variants)
        } catch {
            throw error.within("variants")
        }
    }

    private mutating func outputs(of list: JSONElement) throws(JSONError) -> [Variant] {
        var outputs: [Variant] = []
        var names: [String?] = []
        try list.forEachElement { element throws(JSONError) in
            guard outputs.count < Self.mostVariants else { throw .tooMany(Self.mostVariants) }
            var fields = defaults.inherited(by: element)
            var label: String?
            try element.forEachMember { name, value throws(JSONError) in
                if case "name" = name {
                    label = try value.given?.variantName()
                    return
                }
                if try fields.read(name, value, reader) { return }
                guard !Self.isOfTheJob(name) else {
                    throw JSONError(.invalid, "belongs to the job, not to one of its variants")
                }
                unknown.append("variants[\(outputs.count)].\(name)")
            }
            outputs.append(try fields.variant(reader))
            names.append(label)
        }
        try Self.check(names)
        if names.contains(where: { $0 != nil }) { self.names = names }
        guard !outputs.isEmpty else { throw JSONError(.invalid, "expected 1 to \(Self.mostVariants) variants") }
        return outputs
    }

    /// Checks that no two variants have the same name or, without a name, index.
    private static func check(_ names: [String?]) throws(JSONError) {
        var used: Set<String> = []
        for (index, name) in names.enumerated() where name == nil { used.insert("\(index)") }
        for (index, name) in names.enumerated() {
            guard let name, !used.insert(name).inserted else { continue }
            throw JSONError(
                .invalid, "another variant has this name, or this index and no name", path: "[\(index)].name")
        }
    }

    private static func alternatives(
        _ list: JSONElement, _ reader: JobDecoder
    ) throws(JSONError) -> [Source] {
        var sources: [Source] = []
        try list.forEachElement { element throws(JSONError) in
            guard sources.count < Job.mostAlternatives else { throw .tooMany(Job.mostAlternatives) }
            sources.append(try reader.source(element))
        }
        return sources
    }

    static func id(_ value: JSONElement) throws(JSONError) -> String {
        let id = try value.string()
        guard Job.isID(id) else {
            throw JSONError(.invalid, "expected 1 to \(Job.longestID) characters, none of them U+0000")
        }
        return id
    }

    /// Decodes a tenant's name. It is part of names in Redis, so its characters never require quoting.
    static func tenant(_ value: JSONElement) throws(JSONError) -> String {
        let name = try value.string()
        guard Job.isTenant(name) else {
            throw JSONError(
                .invalid, "expected 1 to \(Job.longestTenant) letters, digits, dots, hyphens and underscores")
        }
        return name
    }

    static func echoed(_ value: JSONElement) throws(JSONError) -> [UInt8] {
        let bytes = value.bytes
        guard bytes.count <= Job.PassthroughMetadata.longest else {
            throw JSONError(
                .invalid, "\(bytes.count) bytes, and at most \(Job.PassthroughMetadata.longest) are allowed")
        }
        return bytes
    }
}

/// The field `fallback`.
enum FallbackField {
    /// The field is absent. The job has the fallback of the settings.
    case standard
    /// The field is `false`.
    case none
    case source(Source)

    init(_ value: JSONElement, _ reader: JobDecoder) throws(JSONError) {
        guard value.kind == .bool else {
            self = .source(try reader.source(value))
            return
        }
        guard try !value.bool() else {
            throw JSONError(.invalid, "expected a source, or false for no fallback picture")
        }
        self = .none
    }

    /// Returns the fallback of a job. A job with uploads has none, because its target would take it for the result.
    func source(standard: Source?, _ delivery: Job.Delivery) throws(JSONError) -> Source? {
        switch self {
        case .standard: return delivery.isPut ? nil : standard
        case .none: return nil
        case .source(let source):
            guard !delivery.isPut else {
                throw JSONError(
                    .invalid, "excludes delivery by put, because the target would take it for the result",
                    path: "fallback")
            }
            return source
        }
    }
}

extension JobDecoder {
    /// Decodes the start of a job and checks that it is not too far ahead.
    fileprivate func start(_ value: JSONElement) throws(JSONError) -> Job.Time {
        let start = try Job.Time(value)
        let seconds =
            switch start {
            case .at(let moment): moment - Timestamp.now.seconds
            case .after(let seconds): seconds
            }
        guard seconds <= maximumDelay else {
            throw JSONError(
                .invalid, "is too far ahead; at most \(Int(maximumDelay)) seconds (schedule.maximumDelay) are allowed")
        }
        return start
    }
}

extension Job.Refresh {
    fileprivate init(_ value: JSONElement) throws(JSONError) {
        if value.kind == .number {
            self = .every(try value.double(in: Self.intervals))
        } else {
            guard try value.string() == "beforeExpiry" else {
                throw JSONError(.invalid, "expected \"beforeExpiry\", or an interval in seconds")
            }
            self = .beforeExpiry
        }
    }
}

extension Job.Time {
    fileprivate init(_ value: JSONElement) throws(JSONError) {
        if value.kind == .number {
            self = .after(try value.double(in: 0...315_360_000))
        } else if let moment = Timestamp(rfc3339: try value.string()) {
            self = .at(moment.seconds)
        } else {
            throw JSONError(.invalid, "expected seconds, or an RFC 3339 date and time")
        }
    }
}

extension JSONElement {
    /// Decodes the name of a variant.
    fileprivate func variantName() throws(JSONError) -> String {
        let name = try string()
        guard Job.isVariantName(name) else {
            throw JSONError(
                .invalid,
                "expected 1 to 64 letters, digits, dots, hyphens and underscores that begin with a letter or a digit")
        }
        return name
    }
}

extension JSONError {
    /// The error for a list with too many elements.
    static func tooMany(_ most: Int) -> JSONError {
        JSONError(.invalid, "is one too many; at most \(most) are allowed")
    }
}
