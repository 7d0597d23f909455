/// The primary picture of a still AVIF file (AVIF 1.1; ISO/IEC 23008-12; ISO/IEC 14496-12, section 8.11): its items,
/// the positions of their coded bytes, and their properties.
///
/// Files are untrusted. A file that is inconsistent, or that uses an unsupported feature (an image sequence, another
/// construction method, overlapping items, an unknown version of a box), is rejected. The caller encodes its pixels
/// instead.
struct AVIFPicture {
    /// An item, such as a coded picture, a grid of others, or EXIF.
    struct Item {
        let id: Int
        let type: String
        let isHidden: Bool
        let isProtected: Bool
        /// True if the item's bytes are in the box `idat`, inside the description, and not in `mdat`.
        var isInDescription = false
        /// The positions of the item's bytes in the file.
        var extents: [Range<Int>] = []
        /// The properties as indices into ``properties``, in the order of the file.
        var properties: [(index: Int, isEssential: Bool)] = []
    }

    /// A reference from an item to others, such as from an alpha plane to its picture.
    struct Reference {
        let type: String
        let from: Int
        var to: [Int]
    }

    let file: [UInt8]
    /// The box `ftyp`.
    let type: Range<Int>
    let primary: Int
    /// All items in the order of the file; after ``keepPicture()`` only those of the picture.
    private(set) var items: [Item]
    private(set) var references: [Reference]
    /// The boxes of all properties.
    let properties: [MediaBox]

    /// Writes the file with only the primary picture and its coded bytes unchanged, without metadata, thumbnails, other
    /// pictures and unused bytes.
    ///
    /// - Parameters:
    ///   - width: the width of the decoded picture.
    ///   - height: the height of the decoded picture.
    ///   - keepingProfile: true if the color profile is retained. Otherwise the picture must be sRGB without it.
    /// - Returns: the file; nil for a file that is not supported, and for another size or other colors.
    static func pixels(of file: [UInt8], width: Int, height: Int, keepingProfile: Bool) -> [UInt8]? {
        guard var picture = AVIFPicture(file), picture.keepPicture(), picture.keepProperties(profile: keepingProfile),
            picture.hasSides(width, height)
        else { return nil }
        return picture.written()
    }

    /// The maximum number of entries that are read from each list.
    private static let limit = 20_000
    /// The maximum file size, for which 32-bit positions are sufficient.
    private static let longest = 1 << 30

    private init?(_ file: [UInt8]) {
        guard file.count <= Self.longest else { return nil }
        var whole = FieldReader(file, 0..<file.count)
        guard let boxes = whole.boxes(upTo: Self.limit, endsOpen: true), let first = boxes.first,
            Self.isStillAVIF(first, in: file),
            boxes.dropFirst().allSatisfy({ ["meta", "mdat", "free", "skip", "uuid"].contains($0.type) })
        else { return nil }
        let descriptions = boxes.filter { $0.type == "meta" }
        guard descriptions.count == 1 else { return nil }
        var description = FieldReader(file, descriptions[0].content)
        guard let full = description.versionAndFlags(), full.version == 0,
            let parts = description.boxes(upTo: Self.limit)
        else { return nil }
        var part: [String: MediaBox] = [:]
        for box in parts {
            switch box.type {
            case "hdlr", "pitm", "iloc", "iinf", "iprp", "iref", "idat":
                guard part.updateValue(box, forKey: box.type) == nil else { return nil }
            // Only items outside of the file need data references, and such items are not supported.
            case "dinf", "free", "skip", "uuid": break
            default: return nil
            }
        }
        func reader(_ type: String) -> FieldReader? { part[type].map { FieldReader(file, $0.content) } }

        guard let handler = reader("hdlr"), Self.isOfPictures(handler), let first = reader("pitm"),
            let primary = Self.primary(first), let information = reader("iinf"), var items = Self.items(information),
            let locations = reader("iloc"), let description = reader("iprp"),
            let (properties, associations) = Self.properties(description)
        else { return nil }
        let data = boxes.filter { $0.type == "mdat" }.map(\.content)
        guard Self.locate(&items, locations, data, part["idat"]?.content) else { return nil }
        for index in items.indices { items[index].properties = associations[items[index].id] ?? [] }
        if let references = reader("iref") {
            guard let all = Self.references(references) else { return nil }
            self.references = all
        } else {
            references = []
        }
        self.file = file
        type = boxes[0].range
        self.primary = primary
        self.items = items
        self.properties = properties
    }
}

// MARK: - Reading

extension AVIFPicture {
    private static func isStillAVIF(_ box: MediaBox, in file: [UInt8]) -> Bool {
        guard box.type == "ftyp" else { return false }
        var reader = FieldReader(file, box.content)
        guard let major = reader.code(), reader.range(of: 4) != nil else { return false }
        var brands = [major]
        while !reader.isAtEnd {
            guard brands.count < limit, let brand = reader.code() else { return false }
            brands.append(brand)
        }
        return brands.contains("avif") && !brands.contains("avis") && !brands.contains("msf1")
    }

    private static func isOfPictures(_ reader: FieldReader) -> Bool {
        var reader = reader
        guard let full = reader.versionAndFlags(), full.version == 0, reader.range(of: 4) != nil else { return false }
        return reader.code() == "pict"
    }

    private static func primary(_ reader: FieldReader) -> Int? {
        var reader = reader
        guard let full = reader.versionAndFlags(), full.version <= 1 else { return nil }
        return reader.number(full.version == 0 ? 2 : 4)
    }

    private static func items(_ reader: FieldReader) -> [Item]? {
        var reader = reader
        guard let full = reader.versionAndFlags(), full.version <= 1,
            let count = reader.number(full.version == 0 ? 2 : 4),
            let boxes = reader.boxes(upTo: limit), boxes.count == count
        else { return nil }
        var (items, ids): ([Item], Set<Int>) = ([], [])
        for box in boxes {
            var entry = FieldReader(reader.file, box.content)
            guard box.type == "infe", let full = entry.versionAndFlags(), full.version == 2 || full.version == 3,
                let id = entry.number(full.version == 2 ? 2 : 4), ids.insert(id).inserted,
                let protection = entry.number(2), let type = entry.code()
            else { return nil }
            items.append(Item(id: id, type: type, isHidden: full.flags & 1 != 0, isProtected: protection != 0))
        }
        return items
    }

    /// Reads the positions of the items, in a data box or in the description itself.
    private static func locate(
        _ items: inout [Item], _ reader: FieldReader, _ data: [Range<Int>], _ own: Range<Int>?
    ) -> Bool {
        var reader = reader
        guard let full = reader.versionAndFlags(), full.version <= 2, let sizes = reader.number(1),
            let moreSizes = reader.number(1)
        else { return false }
        let (offsetSize, lengthSize, baseSize) = (sizes >> 4, sizes & 15, moreSizes >> 4)
        guard [0, 4, 8].contains(offsetSize), [4, 8].contains(lengthSize), [0, 4, 8].contains(baseSize),
            full.version == 0 || moreSizes & 15 == 0, let count = reader.number(full.version < 2 ? 2 : 4),
            count <= limit
        else { return false }
        let indices = Dictionary(uniqueKeysWithValues: items.indices.map { (items[$0].id, $0) })
        var (located, extents): (Set<Int>, Int) = ([], 0)
        for _ in 0..<count {
            guard let id = reader.number(full.version < 2 ? 2 : 4), let index = indices[id],
                located.insert(id).inserted, let method = full.version == 0 ? 0 : reader.number(2), method <= 1,
                reader.number(2) == 0, let base = reader.number(baseSize), let parts = reader.number(2)
            else { return false }
            extents += parts
            let description = method == 1 ? own : nil
            guard extents <= limit, method == 0 || description != nil else { return false }
            items[index].isInDescription = method == 1
            let start = description?.lowerBound ?? 0
            for _ in 0..<parts {
                guard let offset = reader.number(offsetSize), let length = reader.number(lengthSize),
                    case let end = reader.file.count, base <= end, offset <= end, length > 0, length <= end,
                    case let position = start + base + offset, position + length <= end
                else { return false }
                let extent = position..<position + length
                guard description.map(extent.isInside) ?? true else { return false }
                items[index].extents.append(extent)
            }
        }
        return reader.isAtEnd && areApart(items, data)
    }

    /// True if no extents overlap, and every extent of an item outside the description is inside a data box. Items may
    /// share an extent, because encoders write equal bytes once.
    private static func areApart(_ items: [Item], _ data: [Range<Int>]) -> Bool {
        let all = items.flatMap { item in item.extents.map { (range: $0, isInData: !item.isInDescription) } }
            .sorted { ($0.range.lowerBound, $0.range.upperBound) < ($1.range.lowerBound, $1.range.upperBound) }
        // Data boxes are sorted by position.
        var (box, last) = (data.startIndex, Range<Int>?.none)
        for (extent, isInData) in all {
            if let last, extent != last, extent.lowerBound < last.upperBound { return false }
            last = extent
            guard isInData else { continue }
            while box < data.endIndex, data[box].upperBound < extent.upperBound { box += 1 }
            guard box < data.endIndex, extent.isInside(data[box]) else { return false }
        }
        return true
    }

    private static func references(_ reader: FieldReader) -> [Reference]? {
        var reader = reader
        guard let full = reader.versionAndFlags(), full.version <= 1, let boxes = reader.boxes(upTo: limit)
        else {
            return nil
        }
        let size = full.version == 0 ? 2 : 4
        var (references, total): ([Reference], Int) = ([], 0)
        for box in boxes {
            var entry = FieldReader(reader.file, box.content)
            guard let from = entry.number(size), let count = entry.number(2), case () = total += count, total <= limit
            else { return nil }
            var to: [Int] = []
            for _ in 0..<count {
                guard let id = entry.number(size) else { return nil }
                to.append(id)
            }
            guard entry.isAtEnd else { return nil }
            references.append(Reference(type: box.type, from: from, to: to))
        }
        return references
    }

    private typealias Associations = [Int: [(index: Int, isEssential: Bool)]]

    private static func properties(_ reader: FieldReader) -> ([MediaBox], Associations)? {
        var reader = reader
        guard let boxes = reader.boxes(upTo: 2), boxes.map(\.type) == ["ipco", "ipma"] else { return nil }
        var container = FieldReader(reader.file, boxes[0].content)
        guard let properties = container.boxes(upTo: limit) else { return nil }
        var table = FieldReader(reader.file, boxes[1].content)
        guard let full = table.versionAndFlags(), full.version <= 1, let count = table.number(4) else { return nil }
        var (associations, total): (Associations, Int) = ([:], 0)
        for _ in 0..<count {
            guard let id = table.number(full.version == 0 ? 2 : 4), associations[id] == nil,
                let entries = table.number(1), case () = total += entries + 1, total <= limit
            else { return nil }
            var list: [(index: Int, isEssential: Bool)] = []
            for _ in 0..<entries {
                let bits = full.flags & 1 == 0 ? 7 : 15
                guard let entry = table.number((bits + 1) / 8), case let number = entry & (1 << bits - 1),
                    number <= properties.count
                else { return nil }
                // 0 means no property.
                if number > 0 { list.append((number - 1, entry >> bits == 1)) }
            }
            associations[id] = list
        }
        return table.isAtEnd ? (properties, associations) : nil
    }
}

// MARK: - Filtering

extension AVIFPicture {
    /// Removes all items that are not part of the primary one, and their references. Returns false if a remaining item
    /// is not supported.
    private mutating func keepPicture() -> Bool {
        let known = Dictionary(uniqueKeysWithValues: items.indices.map { (items[$0].id, $0) })
        var (tiles, alphas): ([Int: [Int]], [Int: [Int]]) = ([:], [:])
        for reference in references {
            switch reference.type {
            case "dimg":
                guard tiles.updateValue(reference.to, forKey: reference.from) == nil else { return false }
            case "auxl":
                guard let index = known[reference.from], isAlpha(items[index]) else { continue }
                for id in reference.to { alphas[id, default: []].append(reference.from) }
            default: break
            }
        }
        var (kept, position) = ([primary], 0)
        var ids = Set(kept)
        while position < kept.count {
            guard let index = known[kept[position]], isCoded(items[index]) else { return false }
            for id in (tiles[kept[position]] ?? []) + (alphas[kept[position]] ?? []) where ids.insert(id).inserted {
                kept.append(id)
            }
            position += 1
        }
        let others = Set(items.lazy.filter { !ids.contains($0.id) }.flatMap(\.extents))
        items.removeAll { !ids.contains($0.id) }
        guard !items.contains(where: { $0.extents.contains(where: others.contains) }) else { return false }
        return keepReferences(of: ids)
    }

    private mutating func keepReferences(of ids: Set<Int>) -> Bool {
        references.removeAll { !ids.contains($0.from) }
        guard references.allSatisfy({ ["dimg", "auxl", "prem"].contains($0.type) }) else { return false }
        for index in references.indices { references[index].to.removeAll { !ids.contains($0) } }
        references.removeAll(where: \.to.isEmpty)
        return true
    }

    private func isCoded(_ item: Item) -> Bool {
        ["av01", "grid"].contains(item.type) && !item.isProtected && !item.extents.isEmpty
    }

    private func isAlpha(_ item: Item) -> Bool {
        boxes(of: item, "auxC").contains { box in
            let content = file[box.content].dropFirst(4)
            return Self.alpha.contains { content.starts(with: $0.utf8) }
        }
    }

    private static let alpha = [
        "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0", "urn:mpeg:hevc:2015:auxid:1\0",
    ]

    private func boxes(of item: Item, _ type: String) -> [MediaBox] {
        item.properties.lazy.map { properties[$0.index] }.filter { $0.type == type }
    }

    /// Removes the properties that do not affect the pixels. Returns false if an essential one is not supported, or if
    /// the picture may not be sRGB without its profile.
    private mutating func keepProperties(profile: Bool) -> Bool {
        guard profile || isSRGBWithoutProfile else { return false }
        for index in items.indices {
            for property in items[index].properties {
                let type = properties[property.index].type
                if type == "clap" || type == "colr" && colors(of: property.index) == nil { return false }
                if property.isEssential, !Self.known.contains(type) { return false }
            }
            items[index].properties = items[index].properties.filter { property in
                Self.known.contains(properties[property.index].type)
                    && (profile || colors(of: property.index) != .profile)
            }
        }
        return true
    }

    /// The properties that affect the pixels, or may do so. Cropped pictures (`clap`) are not included, because
    /// decoders differ in how they display them.
    private static let known: Set = [
        "ispe", "pixi", "av1C", "auxC", "colr", "pasp", "irot", "imir", "a1op", "a1lx", "lsel", "clli", "mdcv", "cclv",
    ]

    /// The colors that a property specifies.
    private enum Colors: Equatable {
        case code(primaries: Int, transfer: Int)
        case profile
    }

    /// Returns nil for other properties, and for other kinds of colors.
    private func colors(of property: Int) -> Colors? {
        guard properties[property].type == "colr" else { return nil }
        var reader = FieldReader(file, properties[property].content)
        switch reader.code() {
        case "nclx":
            guard let primaries = reader.number(2), let transfer = reader.number(2) else { return nil }
            return .code(primaries: primaries, transfer: transfer)
        case "prof", "rICC": return .profile
        default: return nil
        }
    }

    /// True if the color codes specify sRGB: those of the primary item, or otherwise those in the coded pictures.
    private var isSRGBWithoutProfile: Bool {
        var isSaid = false
        let colored = items.filter { !isAlpha($0) }
        for item in colored {
            for case .code(let primaries, let transfer) in item.properties.compactMap({ colors(of: $0.index) }) {
                guard Self.isSRGB(primaries, transfer) else { return false }
                if item.id == primary { isSaid = true }
            }
        }
        return isSaid
            || colored.allSatisfy { item in
                item.type != "av01"
                    || AV1SequenceHeader.colors(in: file[item.extents[0]]).map(Self.isSRGB) ?? false
            }
    }

    /// True if decoders treat these codes (ITU-T H.273) as sRGB; 2 means unspecified.
    private static func isSRGB(_ primaries: Int, _ transfer: Int) -> Bool {
        [1, 2].contains(primaries) && [1, 2, 6, 13, 14, 15].contains(transfer)
    }

    /// True if the primary item has this size after its rotation.
    private func hasSides(_ width: Int, _ height: Int) -> Bool {
        guard let item = items.first(where: { $0.id == primary }), case let sizes = boxes(of: item, "ispe"),
            sizes.count == 1, case var reader = FieldReader(file, sizes[0].content), reader.range(of: 4) != nil,
            let across = reader.number(4), let down = reader.number(4)
        else { return false }
        let turns = boxes(of: item, "irot").reduce(0) { $0 + Int(file[$1.content].first ?? 0) & 3 }
        return turns % 2 == 0 ? (across, down) == (width, height) : (across, down) == (height, width)
    }
}

extension Range<Int> {
    /// True if the whole range is inside another range.
    fileprivate func isInside(_ other: Range<Int>) -> Bool {
        lowerBound >= other.lowerBound && upperBound <= other.upperBound
    }
}
