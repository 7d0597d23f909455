import TestSupport

/// Generates random valid and invalid jobs. The same seed gives the same jobs.
struct RandomJobs {
    private var generator: SeededNumbers

    init(seed: UInt64) {
        generator = SeededNumbers(seed: seed)
    }

    /// A job of fields that are each valid but may contradict each other.
    mutating func plausible() -> [UInt8] {
        JSONValue.object(members()).bytes
    }

    /// Such a job with one to three mutations, which may make it invalid.
    mutating func mutated() -> [UInt8] {
        var members = members()
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
            let place = Int.random(in: 0...members.count, using: &generator)
            switch Int.random(in: 0..<10, using: &generator) {
            case 0 where place < members.count: members.remove(at: place)
            case 1: add(pick(["Source", "widht", "", "crop", "é", "$schema"]), 1, to: &members)
            case 2...4 where place < members.count: members[place].value = pick(Self.anything)
            default:
                let field = pick(Self.edgeCases)
                members.removeAll { $0.name == field.name }
                add(field.name, pick(field.values), to: &members)
            }
        }
        return JSONValue.object(members).bytes
    }

    private mutating func members() -> [JSONValue.Member] {
        var members = [JSONValue.Member(name: "source", value: pick(Self.sources))]
        for field in Self.valid where Int.random(in: 0..<4, using: &generator) == 0 {
            members.append(.init(name: field.name, value: pick(field.values)))
        }
        for side in ["width", "height"] where Int.random(in: 0..<3, using: &generator) > 0 {
            members.append(.init(name: side, value: length()))
        }
        if Int.random(in: 0..<3, using: &generator) == 0 {
            members.append(.init(name: pick(["processors", "before"]), value: processors()))
        }
        if Int.random(in: 0..<4, using: &generator) == 0 {
            let variants = (0..<Int.random(in: 1...3, using: &generator)).map { _ in variant() }
            members.append(.init(name: "variants", value: .array(variants)))
        }
        if Int.random(in: 0..<4, using: &generator) == 0 {
            let sides = ["x", "y", "width", "height"].map { JSONValue.Member(name: $0, value: fraction()) }
            members.append(.init(name: "cropRect", value: .object(sides)))
        }
        members.shuffle(using: &generator)
        return members
    }

    /// A variant with a few random fields.
    private mutating func variant() -> JSONValue {
        var members: [JSONValue.Member] = []
        for field in Self.valid
        where !Self.jobFields.contains(field.name) && Int.random(in: 0..<8, using: &generator) == 0 {
            members.append(.init(name: field.name, value: pick(field.values)))
        }
        if Int.random(in: 0..<4, using: &generator) == 0 {
            members.append(.init(name: "name", value: pick(["small", "large", "A-b_c.9", "0", nil])))
        }
        for side in ["width", "height"] where Int.random(in: 0..<3, using: &generator) == 0 {
            members.append(.init(name: side, value: pick([length(), nil])))
        }
        if Int.random(in: 0..<4, using: &generator) == 0 {
            members.append(.init(name: pick(["processors", "before"]), value: pick([processors(), nil])))
        }
        return .object(members)
    }

    private mutating func processors() -> JSONValue {
        var random = RandomProcessors(generator: generator)
        defer { generator = random.generator }
        return .array((0..<Int.random(in: 0...3, using: &random.generator)).map { _ in random.next() })
    }

    /// Fields of a job that variants cannot have.
    private static let jobFields: Set<String> = [
        "id", "maxAge", "delivery", "priority", "prefetch", "refresh", "notBefore", "deadline", "metadata",
        "placeholder", "altText",
        "tags", "headers", "cache",
        "slot", "generation", "batch", "webhook", "tenant", "alternatives", "fallback", "preset",
    ]

    private mutating func add(_ name: String, _ value: JSONValue, to members: inout [JSONValue.Member]) {
        if !members.contains(where: { $0.name == name }) { members.append(.init(name: name, value: value)) }
    }

    /// A length in points with any number of decimals, often near half a millionth or half a point.
    private mutating func length() -> JSONValue {
        let whole = Int.random(in: 0...2000, using: &generator)
        return switch Int.random(in: 0..<4, using: &generator) {
        case 0: .int(whole + 1)
        case 1: .double(Double(whole) + 0.5)
        case 2: .double(Double(whole) + (Double(Int.random(in: 1...999_999, using: &generator)) + 0.5) / 1_000_000)
        default: .double(Double.random(in: 0.001...1000, using: &generator))
        }
    }

    private mutating func fraction() -> JSONValue {
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: .int(Int.random(in: 0...1, using: &generator))
        case 1: .double((Double(Int.random(in: 0...999_999, using: &generator)) + 0.5) / 1_000_000)
        case 2: .double(Double.random(in: 0...1e-6, using: &generator))
        default: .double(Double.random(in: 0...1, using: &generator))
        }
    }

    private mutating func pick<Value>(_ values: [Value]) -> Value { values.randomElement(using: &generator)! }
}
