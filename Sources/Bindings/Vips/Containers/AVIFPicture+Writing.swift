extension AVIFPicture {
    /// Writes a file with the items, in the layout of libheif: the description, followed by one data box.
    func written() -> [UInt8] {
        let own = ItemData(items.filter(\.isInDescription), of: file)
        let data = ItemData(items.filter { !$0.isInDescription }, of: file)
        // The positions do not affect the length of the description.
        let start = type.count + description(own, data, from: 0).count + 8
        var output = BoxWriter()
        output.bytes += file[type]
        output.bytes += description(own, data, from: start)
        output.box("mdat") { $0.bytes += data.bytes }
        return output.bytes
    }

    /// The bytes of items, one extent after another, each once.
    private struct ItemData {
        private(set) var bytes: [UInt8] = []
        private var places: [Range<Int>: Int] = [:]

        init(_ items: [Item], of file: [UInt8]) {
            for extent in Set(items.flatMap(\.extents)).sorted(by: { $0.lowerBound < $1.lowerBound }) {
                places[extent] = bytes.count
                bytes += file[extent]
            }
        }

        func position(of extent: Range<Int>) -> Int { places[extent]! }
    }

    /// The size of an item number in bytes.
    private var idSize: Int { items.contains { $0.id > 0xffff } ? 4 : 2 }

    /// Writes the box `meta`.
    ///
    /// - Parameter start: the position in the file of the data outside of the description.
    private func description(_ own: ItemData, _ data: ItemData, from start: Int) -> [UInt8] {
        let idSize = idSize
        var output = BoxWriter()
        output.fullBox("meta", 0) { meta in
            meta.fullBox("hdlr", 0) { handler in
                handler.number(0, 4)
                handler.bytes += "pict".utf8
                handler.number(0, 13)  // reserved, and an empty name
            }
            meta.fullBox("pitm", idSize == 2 ? 0 : 1) { $0.number(primary, idSize) }
            if !own.bytes.isEmpty { meta.box("idat") { $0.bytes += own.bytes } }
            writeLocations(own, data, from: start, to: &meta)
            meta.fullBox("iinf", 0) { list in
                list.number(items.count, 2)
                for item in items {
                    list.fullBox("infe", idSize == 2 ? 2 : 3, flags: item.isHidden ? 1 : 0) { entry in
                        entry.number(item.id, idSize)
                        entry.number(0, 2)
                        entry.bytes += item.type.utf8
                        entry.number(0, 1)  // an empty name
                    }
                }
            }
            writeProperties(to: &meta)
            guard !references.isEmpty else { return }
            meta.fullBox("iref", idSize == 2 ? 0 : 1) { list in
                for reference in references {
                    list.box(reference.type) { entry in
                        entry.number(reference.from, idSize)
                        entry.number(reference.to.count, 2)
                        for id in reference.to { entry.number(id, idSize) }
                    }
                }
            }
        }
        return output.bytes
    }

    private func writeLocations(_ own: ItemData, _ data: ItemData, from start: Int, to meta: inout BoxWriter) {
        let idSize = idSize
        let version = idSize == 4 ? 2 : own.bytes.isEmpty ? 0 : 1
        meta.fullBox("iloc", version) { list in
            // Positions and lengths of 4 bytes, without a base offset.
            list.number(0x4400, 2)
            list.number(items.count, version == 2 ? 4 : 2)
            for item in items {
                list.number(item.id, idSize)
                if version > 0 { list.number(item.isInDescription ? 1 : 0, 2) }
                list.number(0, 2)
                list.number(item.extents.count, 2)
                for extent in item.extents {
                    list.number(item.isInDescription ? own.position(of: extent) : start + data.position(of: extent), 4)
                    list.number(extent.count, 4)
                }
            }
        }
    }

    private func writeProperties(to meta: inout BoxWriter) {
        let idSize = idSize
        let used = Set(items.flatMap { $0.properties.map(\.index) }).sorted()
        let numbers = Dictionary(uniqueKeysWithValues: used.enumerated().map { ($1, $0 + 1) })
        let size = used.count > 127 ? 2 : 1
        meta.box("iprp") { container in
            container.box("ipco") { list in
                for index in used { list.bytes += file[properties[index].range] }
            }
            container.fullBox("ipma", idSize == 2 ? 0 : 1, flags: size - 1) { table in
                table.number(items.count, 4)
                for item in items.sorted(by: { $0.id < $1.id }) {
                    table.number(item.id, idSize)
                    table.number(item.properties.count, 1)
                    for property in item.properties {
                        let essential = property.isEssential ? 1 << (8 * size - 1) : 0
                        table.number(essential | numbers[property.index]!, size)
                    }
                }
            }
        }
    }
}

/// A writer of boxes (ISO/IEC 14496-12, section 4.2).
private struct BoxWriter {
    var bytes: [UInt8] = []

    mutating func number(_ number: Int, _ count: Int) {
        for byte in (0..<count).reversed() { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * byte))) }
    }

    mutating func box(_ type: String, _ write: (inout BoxWriter) -> Void) {
        let start = bytes.count
        number(0, 4)
        bytes += type.utf8
        write(&self)
        let size = bytes.count - start
        for byte in 0..<4 { bytes[start + byte] = UInt8(truncatingIfNeeded: size >> (8 * (3 - byte))) }
    }

    mutating func fullBox(_ type: String, _ version: Int, flags: Int = 0, _ write: (inout BoxWriter) -> Void) {
        box(type) { output in
            output.number(version, 1)
            output.number(flags, 3)
            write(&output)
        }
    }
}
