/// The candidate that was probably meant by a misspelt word; nil when none is near.
///
/// Near is at most one change in three letters and three in all, counted as insertions, deletions, replacements and
/// swaps of neighbours (optimal string alignment), in any case. Of several the nearest is taken, and of those the
/// first.
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
