import HalcyonModel
import JSON

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
