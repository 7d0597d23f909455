import HalcyonModel
import JSON

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
