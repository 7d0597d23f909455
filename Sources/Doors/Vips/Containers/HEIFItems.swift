/// The items of a HEIF file (ISO/IEC 14496-12, section 8.11), as libheif writes it.
///
/// libvips 8.14 makes EXIF where there was none, as soon as anything is to be kept. Taking an item out of the file
/// moves what stands behind it, and the file says in absolute places where its items are: so first all numbers are set
/// to what they will be, and then the item's parts are cut.
struct HEIFItems {
    private var file: [UInt8]
    private var cuts: [Range<Int>] = []

    /// The file without EXIF; as it is when there is none.
    ///
    /// - Throws: ``VipsError`` of code `failed` where there is EXIF in a layout that libheif does not write here.
    static func withoutEXIF(_ file: [UInt8]) throws(VipsError) -> [UInt8] {
        var items = HEIFItems(file: file)
        guard let cut = items.cutEXIF() else {
            throw VipsError(.failed, "heifsave_buffer", "EXIF cannot be taken out of this layout of HEIF")
        }
        return cut
    }

    private init(file: [UInt8]) { self.file = file }

    private struct Box {
        var place: Int
        var type: String
        var end: Int
        var body: Int { place + 8 }
    }

    private mutating func cutEXIF() -> [UInt8]? {
        let boxes = boxes(0..<file.count)
        guard let meta = boxes.first(where: { $0.type == "meta" }) else { return file }
        let parts = self.boxes(meta.body + 4..<meta.end)
        guard let information = parts.first(where: { $0.type == "iinf" }) else { return file }
        let entries = self.boxes(information.body + 6..<information.end)
        let exif = entries.filter { $0.type == "infe" && text($0.body + 8) == "Exif" }
        guard !exif.isEmpty else { return file }
        // Versions 0 of the lists, with entries of version 2: their numbers are two bytes long.
        guard let places = parts.first(where: { $0.type == "iloc" }), file[information.body] == 0,
            exif.allSatisfy({ file[$0.body] == 2 }), file[places.body] == 0, file[places.body + 4] == 0x44
        else { return nil }
        let numbers = Set(exif.map { number(2, $0.body + 4) })

        cuts += exif.map { $0.place..<$0.end }
        set(2, information.body + 4, to: number(2, information.body + 4) - exif.count)
        if let references = parts.first(where: { $0.type == "iref" }) {
            let each = self.boxes(references.body + 4..<references.end)
            let gone = each.filter { numbers.contains(number(2, $0.body)) }
            cuts += gone.count == each.count ? [references.place..<references.end] : gone.map { $0.place..<$0.end }
        }
        guard let locations = cutLocations(places, of: numbers) else { return nil }

        cuts.sort { $0.lowerBound < $1.lowerBound }
        for location in locations { move(location) }
        for box in boxes + parts {
            let inside = cutBytes(before: box.end) - cutBytes(before: box.place)
            if inside < box.end - box.place { set(4, box.place, to: box.end - box.place - inside) }
        }
        for cut in cuts.reversed() { file.removeSubrange(cut) }
        return file
    }

    /// Where an item lies: the places of its numbers, and those numbers. They are sums: an extent starts at its own
    /// number and the base of the item.
    private struct Location {
        var base: (place: Int, value: Int)?
        var extents: [(place: Int, start: Int)] = []
    }

    /// Marks the items' entries and bytes as to be cut; gives the locations of all other items.
    private mutating func cutLocations(_ box: Box, of numbers: Set<Int>) -> [Location]? {
        let baseSize = Int(file[box.body + 5] >> 4)
        guard baseSize == 0 || baseSize == 4 else { return nil }
        let count = number(2, box.body + 6)
        var (place, gone, locations) = (box.body + 8, 0, [Location]())
        for _ in 0..<count {
            guard place + 6 + baseSize <= box.end else { return nil }
            var location = Location()
            if baseSize == 4 { location.base = (place + 4, number(4, place + 4)) }
            let extents = place + 6 + baseSize
            let end = extents + 8 * number(2, extents - 2)
            guard end <= box.end else { return nil }
            let isGone = numbers.contains(number(2, place))
            for extent in stride(from: extents, to: end, by: 8) {
                let start = (location.base?.value ?? 0) + number(4, extent)
                let range = start..<start + number(4, extent + 4)
                guard range.upperBound <= file.count else { return nil }
                if isGone { cuts.append(range) } else { location.extents.append((extent, start)) }
            }
            if isGone {
                cuts.append(place..<end)
                gone += 1
            } else {
                locations.append(location)
            }
            place = end
        }
        set(2, box.body + 6, to: count - gone)
        return locations
    }

    /// Writes where the item will lie after the cuts.
    private mutating func move(_ location: Location) {
        let base = location.base.map { $0.value - cutBytes(before: $0.value) } ?? 0
        if let place = location.base?.place { set(4, place, to: base) }
        for (place, start) in location.extents { set(4, place, to: start - cutBytes(before: start) - base) }
    }

    private func cutBytes(before place: Int) -> Int {
        cuts.reduce(0) { $0 + ($1.lowerBound < place ? $1.count : 0) }
    }

    // MARK: Boxes

    private func boxes(_ range: Range<Int>) -> [Box] {
        var (boxes, place) = ([Box](), range.lowerBound)
        while place + 8 <= range.upperBound {
            let size = number(4, place)
            guard size >= 8, place + size <= range.upperBound else { break }
            boxes.append(Box(place: place, type: text(place + 4), end: place + size))
            place += size
        }
        return boxes
    }

    private func text(_ place: Int) -> String {
        String(decoding: file[place..<min(place + 4, file.count)], as: UTF8.self)
    }

    private func number(_ bytes: Int, _ place: Int) -> Int {
        file[place..<place + bytes].reduce(0) { $0 << 8 | Int($1) }
    }

    private mutating func set(_ bytes: Int, _ place: Int, to value: Int) {
        for byte in 0..<bytes { file[place + byte] = UInt8(truncatingIfNeeded: value >> (8 * (bytes - 1 - byte))) }
    }
}
