/// The colors that an AV1 bitstream declares in its sequence header (AV1 bitstream specification, section 5.5).
enum AV1SequenceHeader {
    /// The ITU-T H.273 codes of primaries and transfer characteristics, 2 if they are unspecified. nil if there is no
    /// sequence header, and for one with timing information, as videos have.
    static func colors(in stream: ArraySlice<UInt8>) -> (primaries: Int, transfer: Int)? {
        var rest = stream
        // A temporal delimiter and padding may precede it.
        for _ in 0..<8 {
            guard let header = rest.popFirst(), header & 0x80 == 0 else { return nil }
            let (type, isExtended, saysSize) = (header >> 3 & 15, header & 4 != 0, header & 2 != 0)
            if isExtended { rest = rest.dropFirst() }
            var size = rest.count
            if saysSize {
                guard let number = takeLEB128(&rest), number <= rest.count else { return nil }
                size = number
            }
            if type == 1 {
                var bits = BitReader(bytes: rest.prefix(size))
                return colors(&bits)
            }
            rest = rest.dropFirst(size)
        }
        return nil
    }

    private static func takeLEB128(_ bytes: inout ArraySlice<UInt8>) -> Int? {
        var number = 0
        for index in 0..<8 {
            guard let byte = bytes.popFirst() else { return nil }
            number |= Int(byte & 0x7f) << (7 * index)
            if byte & 0x80 == 0 { return number }
        }
        return nil
    }

    private static func colors(_ bits: inout BitReader) -> (primaries: Int, transfer: Int)? {
        let profile = bits.number(3)
        bits.skip(1)  // still_picture
        let isReduced = bits.flag()
        if isReduced {
            bits.skip(5)  // seq_level_idx
        } else {
            // Without timing information there is no decoder model either.
            guard !bits.flag() else { return nil }
            let hasDelays = bits.flag()
            for _ in 0...bits.number(5) {
                bits.skip(12)  // operating_point_idc
                if bits.number(5) > 7 { bits.skip(1) }  // seq_tier
                if hasDelays, bits.flag() { bits.skip(4) }
            }
        }
        let (widthBits, heightBits) = (bits.number(4) + 1, bits.number(4) + 1)
        bits.skip(widthBits + heightBits)
        if !isReduced, bits.flag() { bits.skip(7) }  // lengths of frame ids
        bits.skip(3)  // superblocks, filter_intra, intra_edge_filter
        if !isReduced {
            bits.skip(4)  // interintra, masked, warped, dual_filter
            let hasOrderHint = bits.flag()
            if hasOrderHint { bits.skip(2) }
            let forcesScreenContent = bits.flag() ? 2 : bits.number(1)
            if forcesScreenContent > 0, !bits.flag() { bits.skip(1) }  // force_integer_mv
            if hasOrderHint { bits.skip(3) }
        }
        bits.skip(3)  // superres, cdef, restoration
        let isDeep = bits.flag()
        if profile == 2, isDeep { bits.skip(1) }
        if profile != 1 { bits.skip(1) }  // mono_chrome
        let isDescribed = bits.flag()
        let (primaries, transfer) = isDescribed ? (bits.number(8), bits.number(8)) : (2, 2)
        return bits.isBeyondEnd ? nil : (primaries, transfer)
    }
}

/// A bit reader that starts with the most significant bit of each byte. Bits beyond the end are 0.
private struct BitReader {
    let bytes: ArraySlice<UInt8>
    private var position = 0

    init(bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    /// True if more bits were read than there are.
    var isBeyondEnd: Bool { position > bytes.count * 8 }

    mutating func skip(_ count: Int) { position += count }

    mutating func flag() -> Bool { number(1) == 1 }

    /// Reads a number of up to 32 bits.
    mutating func number(_ count: Int) -> Int {
        (0..<count).reduce(0) { number, _ in
            defer { position += 1 }
            guard position < bytes.count * 8 else { return number << 1 }
            return number << 1 | Int(bytes[bytes.startIndex + position / 8] >> (7 - position % 8) & 1)
        }
    }
}
