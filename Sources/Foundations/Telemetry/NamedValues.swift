/// Values by name, in the order in which the names came; a name stands once and keeps its last value. For the few that a log record or a span
/// has, which are looked through faster than hashed.
struct NamedValues<Value> {
    /// One name and its value.
    struct Pair {
        let name: String
        var value: Value
    }

    private(set) var pairs: [Pair] = []

    /// Nothing yet, with room for so many.
    init(room: Int = 0) { pairs.reserveCapacity(room) }

    /// The value of a name; setting nil takes it away.
    subscript(name: String) -> Value? {
        get { pairs.first { $0.name == name }?.value }
        set {
            let place = pairs.firstIndex { $0.name == name }
            switch (place, newValue) {
            case (let place?, let value?): pairs[place].value = value
            case (let place?, nil): pairs.remove(at: place)
            case (nil, let value?): pairs.append(Pair(name: name, value: value))
            case (nil, nil): break
            }
        }
    }

    /// Takes over `others`, whose values win.
    mutating func merge(_ others: NamedValues) {
        if pairs.isEmpty { return self = others }
        for pair in others.pairs { self[pair.name] = pair.value }
    }
}

extension NamedValues: Sendable where Value: Sendable {}
extension NamedValues.Pair: Sendable where Value: Sendable {}
extension NamedValues: Equatable where Value: Equatable {}
extension NamedValues.Pair: Equatable where Value: Equatable {}
extension NamedValues: Hashable where Value: Hashable {}
extension NamedValues.Pair: Hashable where Value: Hashable {}
