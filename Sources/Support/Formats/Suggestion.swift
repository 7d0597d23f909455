/// Returns the candidate that a misspelled word most likely means; nil if none is close.
///
/// A candidate is close if it differs by at most one change per three letters and three changes in total. Changes are
/// insertions, deletions, replacements and swaps of neighbors (optimal string alignment), ignoring case. The closest
/// candidate wins; among equals, the first.
public func suggestion(for word: String, among candidates: some Sequence<String>) -> String? {
    let letters = Array(word.lowercased())
    let limit = min(max(1, letters.count / 3), 3)
    var best: (candidate: String, distance: Int)?
    for candidate in candidates {
        let other = Array(candidate.lowercased())
        guard abs(other.count - letters.count) <= limit else { continue }
        let distance = changes(from: letters, to: other)
        if distance <= limit, distance < best?.distance ?? .max { best = (candidate, distance) }
    }
    return best?.candidate
}

private func changes(from left: [Character], to right: [Character]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for row in left.indices {
        var current = [row + 1]
        for column in right.indices {
            let isSame = left[row] == right[column]
            var fewest = min(last[column + 1] + 1, current[column] + 1, last[column] + (isSame ? 0 : 1))
            let isSwap = row > 0 && column > 0 && left[row] == right[column - 1] && left[row - 1] == right[column]
            if isSwap { fewest = min(fewest, beforeLast[column - 1] + 1) }
            current.append(fewest)
        }
        (beforeLast, last) = (last, current)
    }
    return last[right.count]
}
