// Prometheus' text format 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/

extension Family {
    /// Appends the help, the type and all series, ordered by labels.
    func write(_ name: String, to text: inout String) {
        text += "# HELP \(name) \(escaped(help, quotes: false))\n# TYPE \(name) \(kind.rawValue)\n"
        let ordered = series.sorted { $0.key.lexicographicallyPrecedes($1.key) { $0.value < $1.value } }
        for (labels, series) in ordered {
            let pairs = labels.map { "\($0.name)=\"\(escaped($0.value, quotes: true))\"" }
            switch series {
            case .counter(let counter): text += name + braced(pairs) + " \(counter.value)\n"
            case .gauge(let gauge): text += name + braced(pairs) + " \(number(gauge.value))\n"
            case .reading(let reading): text += name + braced(pairs) + " \(number(reading.value))\n"
            case .histogram(let histogram):
                let counts = histogram.cumulativeCounts
                for (bound, count) in zip(histogram.bounds + [.infinity], counts) {
                    text += "\(name)_bucket" + braced(pairs + ["le=\"\(number(bound))\""]) + " \(count)\n"
                }
                text += "\(name)_sum" + braced(pairs) + " \(number(histogram.sum))\n"
                text += "\(name)_count" + braced(pairs) + " \(counts[histogram.bounds.count])\n"
            }
        }
    }
}

private func braced(_ pairs: [String]) -> String {
    pairs.isEmpty ? "" : "{" + pairs.joined(separator: ",") + "}"
}

private func number(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
    return Int64(exactly: value).map(String.init) ?? value.description
}

private func escaped(_ text: String, quotes: Bool) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\\": result += "\\\\"
        case "\n": result += "\\n"
        case "\"" where quotes: result += "\\\""
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result
}

/// A small map that preserves the order of insertion. Names are unique; the last value of a name wins. For the few
/// attributes of a log record or a span, a linear search is faster than hashing.
struct AttributeMap<Value> {
    /// A name with its value.
    struct Pair {
        let name: String
        var value: Value
    }

    private(set) var pairs: [Pair] = []

    /// Creates an empty map with initial capacity.
    init(room: Int = 0) { pairs.reserveCapacity(room) }

    /// The value of a name. Setting nil removes it.
    subscript(name: String) -> Value? {
        get { pairs.first { $0.name == name }?.value }
        set {
            let index = pairs.firstIndex { $0.name == name }
            switch (index, newValue) {
            case (let index?, let value?): pairs[index].value = value
            case (let index?, nil): pairs.remove(at: index)
            case (nil, let value?): pairs.append(Pair(name: name, value: value))
            case (nil, nil): break
            }
        }
    }

    /// Merges `others`, whose values win.
    mutating func merge(_ others: AttributeMap) {
        if pairs.isEmpty { return self = others }
        for pair in others.pairs { self[pair.name] = pair.value }
    }
}

extension AttributeMap: Sendable where Value: Sendable {}
extension AttributeMap.Pair: Sendable where Value: Sendable {}
extension AttributeMap: Equatable where Value: Equatable {}
extension AttributeMap.Pair: Equatable where Value: Equatable {}
extension AttributeMap: Hashable where Value: Hashable {}
extension AttributeMap.Pair: Hashable where Value: Hashable {}
