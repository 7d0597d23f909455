import Vips

@testable import MalformedImages

/// A builder of still AVIF files (ISO/IEC 23008-12), box by box, from images that libvips encoded.
struct AVIFFile: Sendable {
    struct Item: Sendable {
        var id: Int
        var type = "av01"
        var data: [UInt8]
        /// One-based indices of ``AVIFFile/properties``, with 0x80 set for essential ones.
        var properties: [Int] = []
        /// Whether the data is in `idat`.
        var isInDescription = false
        /// The number of extents of the data.
        var parts = 1
    }

    var items: [Item] = []
    var properties: [[UInt8]] = []
    var references: [(type: String, from: Int, to: [Int])] = []
    var brands = "avifmif1miaf"
    /// Additional boxes inside `meta`, and at the end of the file.
    var moreInside: [UInt8] = []
    var moreOutside: [UInt8] = []
    /// The size of item IDs, in bytes.
    var idSize = 2
    /// Bytes that belong to no item and precede the data of each.
    var unused: [UInt8] = []

    init() {}

    /// Creates a file of one encoded image.
    init(_ picture: AV1Image, profile: [UInt8]? = nil) {
        let own = picture.properties
        properties = own + (profile.map { [HEIFFile.box("colr", text("prof") + $0)] } ?? [])
        items = [Item(id: 1, data: picture.data, properties: properties.indices.map { $0 + 1 })]
    }

    /// Adds an item of metadata about the first one.
    mutating func describe(_ id: Int, _ type: String, _ data: [UInt8]) {
        items.append(Item(id: id, type: type, data: data))
        references.append(("cdsc", id, [1]))
    }

    static func full(_ type: String, _ version: Int, flags: Int = 0, _ content: [UInt8]) -> [UInt8] {
        HEIFFile.box(type, big(version, 1) + big(flags, 3) + content)
    }

    private func id(_ id: Int) -> [UInt8] { big(id, idSize) }

    var bytes: [UInt8] {
        let isLarge = idSize == 4
        let type = HEIFFile.box("ftyp", text("avif") + zeros(4) + text(brands))
        let own = items.filter(\.isInDescription).flatMap(\.data)
        let entries = items.flatMap { item in
            let more = item.type == "mime" ? text("application/rdf+xml") + [0] : []
            return Self.full("infe", isLarge ? 3 : 2, id(item.id) + zeros(2) + text(item.type) + [0] + more)
        }
        let table = items.flatMap { item in
            id(item.id) + big(item.properties.count, 1) + item.properties.map { UInt8($0) }
        }
        let links = references.flatMap { reference in
            HEIFFile.box(reference.type, id(reference.from) + big(reference.to.count, 2) + reference.to.flatMap(id))
        }
        func description(_ start: Int) -> [UInt8] {
            var (offset, inside) = (start + 8, 0)
            let locations = items.flatMap { item in
                if !item.isInDescription { offset += unused.count }
                let size = item.data.count / item.parts
                let extents = (0..<item.parts).flatMap { part in
                    let length = part < item.parts - 1 ? size : item.data.count - size * part
                    return big((item.isInDescription ? inside : offset) + size * part, 4) + big(length, 4)
                }
                if item.isInDescription { inside += item.data.count } else { offset += item.data.count }
                return id(item.id) + big(item.isInDescription ? 1 : 0, 2) + zeros(2) + big(item.parts, 2) + extents
            }
            return Self.full(
                "meta", 0,
                Self.full("hdlr", 0, zeros(4) + text("pict") + zeros(12) + text("a secret tool") + [0])
                    + Self.full("pitm", isLarge ? 1 : 0, id(1))
                    + (own.isEmpty ? [] : HEIFFile.box("idat", own))
                    + Self.full(
                        "iloc", isLarge ? 2 : 1, [0x44, 0] + big(items.count, isLarge ? 4 : 2) + locations)
                    + Self.full("iinf", 0, big(items.count, 2) + entries)
                    + HEIFFile.box(
                        "iprp",
                        HEIFFile.box("ipco", properties.flatMap { $0 })
                            + Self.full("ipma", isLarge ? 1 : 0, big(items.count, 4) + table))
                    + (links.isEmpty ? [] : Self.full("iref", isLarge ? 1 : 0, links)) + moreInside)
        }
        let data = HEIFFile.box("mdat", items.filter { !$0.isInDescription }.flatMap { unused + $0.data })
        return type + description(type.count + description(0).count) + data + moreOutside
    }
}

/// An image that libvips encoded as AV1, with its properties.
struct AV1Image: Sendable {
    var data: [UInt8]
    /// `colr`, `av1C`, `ispe` and `pixi`.
    var properties: [[UInt8]]

    /// Encodes a pattern of one or three bands.
    init(_ width: Int, _ height: Int, bands: Int = 3, seed: Int = 7, colors: Bool = true) throws {
        let pixels = (0..<width * height * bands).map { UInt8(truncatingIfNeeded: $0 * $0 / seed) }
        let file = try Image(pixels: pixels, width: width, height: height, bands: bands)
            .encoded(as: .heif, ["compression": "av1", "effort": 0, "Q": 60], keeping: [])
        data = Array(file[(file.offset(of: "mdat") + 4)...])
        properties = (colors ? ["colr", "av1C", "ispe", "pixi"] : ["av1C", "ispe", "pixi"]).map { type in
            let start = file.offset(of: type) - 4
            return Array(file[start..<start + Int(file[start + 2]) << 8 + Int(file[start + 3])])
        }
    }
}
