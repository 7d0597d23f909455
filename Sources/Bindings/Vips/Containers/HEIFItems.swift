/// The items of a HEIF file (ISO/IEC 14496-12, section 8.11), as libheif writes it.
///
/// libvips 8.14 adds EXIF to files without it whenever any metadata is retained. Removing an item moves the bytes after
/// it, and the file refers to its items by absolute positions. So all numbers are updated first, and then the parts of
/// the item are cut.
struct HEIFItems {
    private var file: [UInt8]
    private var cuts: [Range<Int>] = []

    /// Returns the file without EXIF, or unchanged if it has none.
    ///
    /// - Throws: ``VipsError`` with code `failed` if the EXIF is in a layout that libheif does not write here.
    static func withoutEXIF(_ file: [UInt8]) throws(VipsError) -> [UInt8] {
        var items = HEIFItems(file: file)
        guard let cut = items.cutEXIF() else {
            throw VipsError(.failed, "heifsave_buffer", "cannot remove EXIF from this HEIF layout")
        }
        return cut
    }

    private init(file: [UInt8]) { self.file = file }

    private struct Box {
        var position: Int
        var type: String
        var end: Int
        var body: Int { position + 8 }
    }

    private mutating func cutEXIF() -> [UInt8]? {
        let boxes = boxes(0..<file.count)
        guard let meta = boxes.first(where: { $0.type == "meta" }) else { return file }
        let parts = self.boxes(meta.body + 4..<meta.end)
        guard let information = parts.first(where: { $0.type == "iinf" }) else { return file }
        let entries = self.boxes(information.body + 6..<information.end)
        let exif = entries.filter { $0.type == "infe" && text($0.body + 8) == "Exif" }
        guard !exif.isEmpty else { return file }
        // Version 0 of the lists, with entries of version 2, in which item numbers are two bytes long.
        guard let places = parts.first(where: { $0.type == "iloc" }), file[information.body] == 0,
            exif.allSatisfy({ file[$0.body] == 2 }), file[places.body] == 0, file[places.body + 4] == 0x44
        else { return nil }
        let numbers = Set(exif.map { number(2, $0.body + 4) })

        cuts += exif.map { $0.position..<$0.end }
        set(2, information.body + 4, to: number(2, information.body + 4) - exif.count)
        if let references = parts.first(where: { $0.type == "iref" }) {
            let each = self.boxes(references.body + 4..<references.end)
            let gone = each.filter { numbers.contains(number(2, $0.body)) }
            cuts +=
                gone.count == each.count ? [references.position..<references.end] : gone.map { $0.position..<$0.end }
        }
        guard let locations = cutLocations(places, of: numbers) else { return nil }

        cuts.sort { $0.lowerBound < $1.lowerBound }
        for location in locations { move(location) }
        for box in boxes + parts {
            let inside = cutBytes(before: box.end) - cutBytes(before: box.position)
            if inside < box.end - box.position { set(4, box.position, to: box.end - box.position - inside) }
        }
        for cut in cuts.reversed() { file.removeSubrange(cut) }
        return file
    }

    /// The location fields of an item: their positions and values. An extent starts at the sum of its value and the
    /// base of the item.
    private struct Location {
        var base: (position: Int, value: Int)?
        var extents: [(position: Int, start: Int)] = []
    }

    /// Marks the items' entries and bytes for cutting, and returns the locations of all other items.
    private mutating func cutLocations(_ box: Box, of numbers: Set<Int>) -> [Location]? {
        let baseSize = Int(file[box.body + 5] >> 4)
        guard baseSize == 0 || baseSize == 4 else { return nil }
        let count = number(2, box.body + 6)
        var (position, gone, locations) = (box.body + 8, 0, [Location]())
        for _ in 0..<count {
            guard position + 6 + baseSize <= box.end else { return nil }
            var location = Location()
            if baseSize == 4 { location.base = (position + 4, number(4, position + 4)) }
            let extents = position + 6 + baseSize
            let end = extents + 8 * number(2, extents - 2)
            guard end <= box.end else { return nil }
            let isGone = numbers.contains(number(2, position))
            for extent in stride(from: extents, to: end, by: 8) {
                let start = (location.base?.value ?? 0) + number(4, extent)
                let range = start..<start + number(4, extent + 4)
                guard range.upperBound <= file.count else { return nil }
                if isGone { cuts.append(range) } else { location.extents.append((extent, start)) }
            }
            if isGone {
                cuts.append(position..<end)
                gone += 1
            } else {
                locations.append(location)
            }
            position = end
        }
        set(2, box.body + 6, to: count - gone)
        return locations
    }

    /// Writes the location of the item after the cuts.
    private mutating func move(_ location: Location) {
        let base = location.base.map { $0.value - cutBytes(before: $0.value) } ?? 0
        if let position = location.base?.position { set(4, position, to: base) }
        for (position, start) in location.extents { set(4, position, to: start - cutBytes(before: start) - base) }
    }

    private func cutBytes(before position: Int) -> Int {
        cuts.reduce(0) { $0 + ($1.lowerBound < position ? $1.count : 0) }
    }

    // MARK: Boxes

    private func boxes(_ range: Range<Int>) -> [Box] {
        var (boxes, position) = ([Box](), range.lowerBound)
        while position + 8 <= range.upperBound {
            let size = number(4, position)
            guard size >= 8, position + size <= range.upperBound else { break }
            boxes.append(Box(position: position, type: text(position + 4), end: position + size))
            position += size
        }
        return boxes
    }

    private func text(_ position: Int) -> String {
        String(decoding: file[position..<min(position + 4, file.count)], as: UTF8.self)
    }

    private func number(_ bytes: Int, _ position: Int) -> Int {
        file[position..<position + bytes].reduce(0) { $0 << 8 | Int($1) }
    }

    private mutating func set(_ bytes: Int, _ position: Int, to value: Int) {
        for byte in 0..<bytes { file[position + byte] = UInt8(truncatingIfNeeded: value >> (8 * (bytes - 1 - byte))) }
    }
}
