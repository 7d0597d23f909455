/// An uncompressed bitmap of Windows: a BMP file, or an image of an icon (Microsoft, "Bitmap Storage" and "Icons").
///
/// libvips reads BMP only with ImageMagick, which is not enabled. Here the header is parsed, and libvips reads the
/// samples where they are. No pixel is computed before it is needed.
struct Bitmap {
    /// The sides in pixels.
    let width, height: Int
    private let isTopDown: Bool
    private let bits: Int
    private let compression: Int
    /// The masks of red, green, blue and alpha; nil for the order of the format.
    private let masks: [Int]?
    /// Red, green and blue of each color of the palette.
    private let palette: [UInt8]
    /// The position of the first row, and the distance between rows.
    private let start, stride: Int
    /// True for an image of an icon, which has an alpha channel or a mask after its rows.
    private let isIcon: Bool

    /// The sizes of the known headers. The first is that of OS/2 1.x.
    private static let headers: Set = [12, 40, 52, 56, 64, 108, 124]

    /// True if the bytes begin with the two headers of a BMP file.
    static func begins(_ file: [UInt8]) -> Bool {
        guard file.starts(with: "BM".utf8), let size = file.little(14, 4) else { return false }
        return headers.contains(size)
    }

    /// True if a file ends before its last row.
    static func isTruncated(_ file: [UInt8]) -> Bool {
        // A malformed file is not known to be truncated.
        guard let bitmap = try? Bitmap(file: file) else { return false }
        return bitmap.rows(in: file.count) < bitmap.height
    }

    /// Parses the headers of a BMP file.
    /// - Throws: ``VipsError`` for a malformed header.
    init(file: [UInt8]) throws(VipsError) {
        guard let start = file.little(10, 4) else { throw Self.malformed("it ends within its header") }
        try self.init(file, at: 14, rows: start, isIcon: false)
    }

    /// Parses the header of an image in an icon.
    /// - Throws: ``VipsError`` for a malformed header.
    init(icon: [UInt8], at position: Int) throws(VipsError) {
        try self.init(icon, at: position, rows: nil, isIcon: true)
    }

    /// - Parameter rows: the position of the first row; nil if it follows the palette.
    private init(_ file: [UInt8], at header: Int, rows: Int?, isIcon: Bool) throws(VipsError) {
        guard let size = file.little(header, 4), Self.headers.contains(size) else {
            throw Self.malformed("the size of the header is unknown")
        }
        let isShort = size == 12
        let side = isShort ? 2 : 4
        guard let across = file.little(header + 4, side), let down = file.little(header + 4 + side, side),
            let bits = file.little(header + 6 + 2 * side, 2), header + size <= file.count
        else { throw Self.malformed("it ends within its header") }
        let (width, signed) =
            isShort ? (across, down) : (Int(Int32(truncatingIfNeeded: across)), Int(Int32(truncatingIfNeeded: down)))
        isTopDown = signed < 0
        // An icon counts the rows of its mask, too.
        height = isIcon ? signed / 2 : abs(signed)
        self.width = width
        self.bits = bits
        self.isIcon = isIcon
        compression = isShort ? 0 : file.little(header + 16, 4) ?? 0
        guard (1...Self.longestSide).contains(width), (1...Self.longestSide).contains(height) else {
            throw Self.malformed("it has \(width)×\(height) pixels")
        }
        let hasMasks = (compression == 3 || compression == 6) && size != 64
        var end = header + size
        if hasMasks {
            // Later headers contain the masks, which follow the first one.
            let count = size >= 56 || compression == 6 ? 4 : 3
            masks = (0..<count).map { file.little(header + 40 + $0 * 4, 4) ?? 0 }
            if size == 40 { end += count * 4 }
        } else {
            masks = nil
        }
        let entry = isShort ? 3 : 4
        var colors = 0
        if bits <= 8 {
            let given = isShort ? 0 : file.little(header + 32, 4) ?? 0
            colors = given == 0 ? 1 << bits : min(given, 1 << bits)
        }
        let limit = min(rows ?? .max, file.count)
        // Colors that the file does not have are black.
        palette = (0..<colors).flatMap { index -> [UInt8] in
            let position = end + index * entry
            return position + 3 <= limit ? [file[position + 2], file[position + 1], file[position]] : [0, 0, 0]
        }
        start = rows ?? end + colors * entry
        guard start >= end, start <= file.count else { throw Self.malformed("its rows begin outside the file") }
        stride = (width * bits + 31) / 32 * 4
        guard stride <= Self.longestRow else { throw Self.malformed("its rows are too long") }
    }

    /// The longest side and row that libvips accepts, in samples.
    private static let longestSide = 10_000_000
    private static let longestRow = 10_000_000

    private static func malformed(_ message: String) -> VipsError { VipsError(.failed, "bmp", message) }

    /// A feature that is not supported; nil if there is none.
    var unsupportedFeature: String? {
        switch (compression, bits) {
        case (0, 1), (0, 4), (0, 8), (0, 16), (0, 24), (0, 32): nil
        case (3, 16), (6, 16), (3, 32), (6, 32): fields == nil ? "unusual bit masks" : nil
        case (0, _), (3, _), (6, _): "\(bits) bits per pixel"
        case (1, _), (2, _): "run-length encoding"
        default: "an unknown compression (\(compression))"
        }
    }

    /// The shift and the maximum of each channel; nil if a mask is not supported.
    private var fields: [(shift: Int, most: Int)]? {
        var masks = masks ?? (bits == 16 ? [0x7c00, 0x3e0, 0x1f] : [0xff0000, 0xff00, 0xff])
        if masks.count == 4, masks[3] == 0 { masks.removeLast() }
        if isIcon, bits == 32, masks.count == 3 { masks.append(0xff00_0000) }
        var fields: [(shift: Int, most: Int)] = []
        for mask in masks {
            guard mask > 0, mask < 1 << bits else { return nil }
            let (shift, most) = (mask.trailingZeroBitCount, mask >> mask.trailingZeroBitCount)
            // The bits of a mask are contiguous. With 32 bits, each is a byte.
            guard most & (most + 1) == 0, bits == 16 || most == 255 && shift % 8 == 0 else { return nil }
            fields.append((shift, most))
        }
        return fields
    }

    /// The number of complete rows in a file of this size.
    private func rows(in count: Int) -> Int { stride > 0 ? min(height, max(0, count - start) / stride) : height }

    /// The picture.
    /// - Parameters:
    ///   - file: the bytes whose header was parsed.
    ///   - toleratingCut: true if rows that are missing at the end of the file are black.
    /// - Throws: ``VipsError`` if rows are missing, or for a feature named by ``unsupportedFeature``.
    func image(of file: RetainedBlob, toleratingCut: Bool) throws(VipsError) -> Image {
        if let unsupportedFeature { throw Self.malformed("it has \(unsupportedFeature)") }
        let rows = rows(in: file.count)
        guard rows == height || toleratingCut else { throw Self.malformed("it ends after \(rows) of \(height) rows") }
        guard rows > 0 else { return try Image(color: [0, 0, 0], width: width, height: height) }
        let samples = try Image(samples: file, from: start, width: stride, height: rows)
        var picture = try pixels(of: isTopDown ? samples : samples.flipped())
        if rows < height {
            // The last rows of the file are the first ones of the picture, unless it is top-down.
            picture = try picture.with(
                "embed",
                [
                    "x": 0, "y": .int(isTopDown ? 0 : height - rows), "width": .int(width), "height": .int(height),
                ])
        }
        if isIcon, bits < 32, let mask = try mask(in: file) {
            picture = try Operation.call("bandjoin", ["in": .images([picture, mask])]).image()
        }
        return try picture.with("copy", ["interpretation": picture.bands < 3 ? "b-w" : "srgb"])
    }

    private func pixels(of samples: Image) throws(VipsError) -> Image {
        switch bits {
        case 1, 4, 8: return try colors(of: bits == 8 ? samples : samples.unpacked(bits).first(columns: width))
        case 24: return try samples.first(columns: width * 3).with("bandfold", ["factor": 3]).bands([2, 1, 0])
        case 32:
            let order = (fields ?? []).map { $0.shift / 8 }
            return try samples.with("bandfold", ["factor": 4]).bands(order)
        default: break
        }
        let fields = fields ?? []
        let words = try samples.first(columns: width * 2).with("bandfold", ["factor": 2])
            .with("recomb", ["m": .image(Image(matrix: [[1, 256]]))]).with("cast", ["format": "ushort"])
        return try words.with("boolean_const", ["boolean": "rshift", "c": .doubles(fields.map { Double($0.shift) })])
            .with("boolean_const", ["boolean": "and", "c": .doubles(fields.map { Double($0.most) })])
            .with(
                "linear",
                [
                    "a": .doubles(fields.map { 255 / Double($0.most) }),
                    "b": .doubles(fields.map { _ in 0.5 }), "uchar": true,
                ])
    }

    /// Replaces indices by the colors of the palette.
    private func colors(of indices: Image) throws(VipsError) -> Image {
        let reds = Array(Swift.stride(from: 0, to: palette.count, by: 3))
        let isGrey = reds.allSatisfy { palette[$0] == palette[$0 + 1] && palette[$0] == palette[$0 + 2] }
        let table: [UInt8] = isGrey ? reds.map { palette[$0] } : palette
        let bands = isGrey ? 1 : 3
        let lut = try Image(
            pixels: table + [UInt8](repeating: 0, count: 256 * bands - table.count), width: 256, height: 1,
            bands: bands)
        return try indices.first(columns: width).with("maplut", ["lut": .image(lut)])
    }

    /// The alpha channel from the mask of an icon; nil if the file does not have it.
    private func mask(in file: RetainedBlob) throws(VipsError) -> Image? {
        let (first, stride) = (start + self.stride * height, (width + 31) / 32 * 4)
        guard first <= file.count, stride * height <= file.count - first else { return nil }
        return try Image(samples: file, from: first, width: stride, height: height).flipped().unpacked(1)
            .first(columns: width).with("linear", ["a": [-255], "b": [255], "uchar": true])
    }
}

/// An icon of Windows: a directory of images, each a PNG file or a bitmap.
struct IconFile {
    private struct Entry {
        let area, bits, position, size: Int
    }

    private let file: [UInt8]
    private let largest: Entry

    /// True if the bytes begin with the directory of an icon that has an image.
    static func begins(_ file: [UInt8]) -> Bool {
        guard file.starts(with: [0, 0, 1, 0]), let count = file.little(4, 2), count > 0, let first = entry(file, 0)
        else { return false }
        return file[9] == 0 && first.position >= 6 + 16 * count && first.size > 0
    }

    /// Parses the directory.
    /// - Throws: ``VipsError`` if no image lies within the file.
    init(_ file: [UInt8]) throws(VipsError) {
        self.file = file
        let entries = (0..<(file.little(4, 2) ?? 0)).compactMap { Self.entry(file, $0) }
            .filter { $0.position < file.count && $0.size > 0 }
        guard let largest = entries.max(by: { ($0.area, $0.bits) < ($1.area, $1.bits) }) else {
            throw VipsError(.failed, "ico", "no image lies within the file")
        }
        self.largest = largest
    }

    private static func entry(_ file: [UInt8], _ index: Int) -> Entry? {
        let start = 6 + index * 16
        guard let bits = file.little(start + 6, 2), let size = file.little(start + 8, 4),
            let position = file.little(start + 12, 4)
        else { return nil }
        // 0 means 256.
        let sides = file[start..<start + 2].map { $0 == 0 ? 256 : Int($0) }
        return Entry(area: sides[0] * sides[1], bits: bits, position: position, size: size)
    }

    /// The largest image if it is a PNG file.
    var png: [UInt8]? {
        let end = min(file.count, largest.position + largest.size)
        let bytes = file[largest.position..<end]
        return bytes.starts(with: [0x89, 0x50, 0x4e, 0x47]) ? Array(bytes) : nil
    }

    /// The largest image if it is a bitmap.
    /// - Throws: ``VipsError`` for a malformed header.
    func bitmap() throws(VipsError) -> Bitmap { try Bitmap(icon: file, at: largest.position) }
}

extension [UInt8] {
    /// Reads an unsigned little-endian number; nil beyond the end.
    fileprivate func little(_ position: Int, _ size: Int) -> Int? {
        guard position >= 0, position <= count - size else { return nil }
        return self[position..<position + size].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}

extension Image {
    fileprivate func with(_ operation: String, _ arguments: Operation.Arguments) throws(VipsError) -> Image {
        try Operation.call(operation, arguments.merging(["in": .image(self)]) { $1 }).image()
    }

    fileprivate func flipped() throws(VipsError) -> Image { try with("flip", ["direction": "vertical"]) }

    fileprivate func first(columns: Int) throws(VipsError) -> Image { try cropped(0, 0, columns, height) }

    fileprivate func bands(_ order: [Int]) throws(VipsError) -> Image {
        var bands: [Image] = []
        for band in order {
            bands.append(
                try Operation.call("extract_band", ["in": .image(self), "band": .int(band)]).image())
        }
        return try Operation.call("bandjoin", ["in": .images(bands)]).image()
    }

    /// Returns a pixel for each group of `bits` bits, of which the highest are first.
    fileprivate func unpacked(_ bits: Int) throws(VipsError) -> Image {
        let shifts = stride(from: 8 - bits, through: 0, by: -bits).map { UInt8($0) }
        let pattern = try Image(pixels: shifts, width: shifts.count, height: 1, bands: 1)
            .with("replicate", ["across": .int(width), "down": .int(height)])
        // bandunfold would be shorter, but requests too few pixels of parts whose width is not a multiple.
        let wide = try Operation.call(
            "zoom", ["input": .image(self), "xfac": .int(shifts.count), "yfac": 1]
        ).image()
        return try Operation.call(
            "boolean", ["left": .image(wide), "right": .image(pattern), "boolean": "rshift"]
        ).image().with("boolean_const", ["boolean": "and", "c": [.init(1 << bits - 1)]])
    }
}
