/// The index of an MP4 or QuickTime file (ISO/IEC 14496-12): where the samples of its video track are. A pure value.
///
/// It tells which parts of a file the decoder needs for a frame. Reading beyond the end of a box yields nil, counts are
/// limited, and a damaged index leads to no index at all.
struct MP4Index: Sendable {
    /// The codec, by its name in ffmpeg if it is a common one.
    let codec: String
    /// The duration of the track in seconds.
    let duration: Double
    private var offsets: [Int] = []
    private var sizes: [Int] = []
    /// The decoding times in units of the track.
    private var times: [Int] = []
    private var sync: [Int] = []
    private let scale: Double
    /// The time by which an edit list delays the track or cuts it, in seconds.
    private var shift = 0.0

    /// The maximum number of samples: 9 hours at 120 frames per second.
    static let mostSamples = 4_000_000
    private static let longestFile = 1 << 50
    /// The margins in which samples are needed. ffmpeg seeks to a time before the requested one, because frames may be
    /// stored in another order than they are shown, and decodes more frames before it returns one.
    private static let before = 0.5
    private static let after = 1.5
    private static let samplesAfter = 48
    /// Samples at the beginning of the file from which ffmpeg learns the properties of the track.
    private static let firstSamples = 12

    /// Parses the content of the box `moov`.
    /// - Parameter fileSize: The size of the whole file in bytes, which limits the number of samples.
    /// - Returns: nil if it has no index of a video track, such as a fragmented file.
    init?(moov: [UInt8], fileSize: Int) {
        let movie = MP4Box.all(in: moov[...])
        guard !movie.contains(where: { $0.type == "mvex" }), let track = movie.lazy.compactMap(VideoTrack.init).first
        else { return nil }
        codec = Self.names[track.entry] ?? track.entry.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
        scale = Double(track.scale)
        duration = Double(track.duration) / scale
        guard read(track.table, fileSize), !codec.isEmpty else { return nil }
        let timescale = movie.first("mvhd").flatMap { MP4Box.timing($0.content)?.scale } ?? 1
        shift = track.edits.map { Self.shift(of: $0, media: scale, movie: Double(timescale)) } ?? 0
    }

    /// The boxes of a video track.
    private struct VideoTrack {
        let entry: String
        let scale, duration: Int
        let table: [MP4Box]
        let edits: ArraySlice<UInt8>?

        /// Returns nil for other boxes and tracks.
        init?(_ box: MP4Box) {
            guard box.type == "trak" else { return nil }
            let boxes = MP4Box.all(in: box.content)
            let media = boxes.first("mdia").map { MP4Box.all(in: $0.content) } ?? []
            guard media.first("hdlr")?.content.text(8) == "vide",
                let timing = media.first("mdhd").flatMap({ MP4Box.timing($0.content) }), timing.scale > 0,
                timing.duration >= 0, let information = media.first("minf").map({ MP4Box.all(in: $0.content) }),
                let table = information.first("stbl").map({ MP4Box.all(in: $0.content) }),
                let entry = table.first("stsd")?.content.text(12)
            else { return nil }
            (self.entry, scale, duration, self.table) = (entry, timing.scale, timing.duration, table)
            edits = boxes.first("edts").map { MP4Box.all(in: $0.content) }?.first("elst")?.content
        }
    }

    private static let names = [
        "avc1": "h264", "avc3": "h264", "hvc1": "hevc", "hev1": "hevc", "av01": "av1", "vp09": "vp9", "vp08": "vp8",
        "mp4v": "mpeg4", "jpeg": "mjpeg", "apcn": "prores", "apch": "prores", "apcs": "prores", "apco": "prores",
    ]

    /// Reads the tables of samples (sections 8.6.1, 8.6.2, 8.7.3 to 8.7.5).
    private mutating func read(_ table: [MP4Box], _ fileSize: Int) -> Bool {
        guard let lengths = table.first("stsz")?.content, let uniform = lengths.number(4),
            let count = lengths.number(8), (1...Self.mostSamples).contains(count), uniform * count <= fileSize,
            let durations = table.first("stts")?.content,
            let runs = durations.number(4), let chunks = table.first("stsc")?.content, let groups = chunks.number(4)
        else { return false }
        if uniform > 0 {
            sizes = [Int](repeating: uniform, count: count)
        } else {
            guard lengths.count >= 12 + count * 4 else { return false }
            sizes = (0..<count).map { lengths.number(12 + $0 * 4) ?? 0 }
        }
        var time = 0
        for run in 0..<runs {
            if times.count == count { break }
            guard let repeats = durations.number(8 + run * 8), let step = durations.number(12 + run * 8) else {
                return false
            }
            for _ in 0..<min(repeats, count - times.count) {
                times.append(time)
                time += step
            }
        }
        let wide = table.first("co64")?.content
        guard times.count == count, let places = wide ?? table.first("stco")?.content, let total = places.number(4)
        else { return false }
        var chunk = 1
        for group in 0..<groups {
            if offsets.count == count { break }
            guard let first = chunks.number(8 + group * 12), let inside = chunks.number(12 + group * 12),
                first == chunk,
                inside > 0
            else { return false }
            let next = group + 1 < groups ? chunks.number(20 + group * 12) ?? 0 : total + 1
            guard next > chunk, next <= total + 1 else { return false }
            while chunk < next, offsets.count < count {
                let position = 8 + (chunk - 1) * (wide == nil ? 4 : 8)
                guard var place = wide == nil ? places.number(position) : places.long(position),
                    (0...Self.longestFile).contains(place)
                else { return false }
                for _ in 0..<min(inside, count - offsets.count) {
                    offsets.append(place)
                    place += sizes[offsets.count - 1]
                }
                chunk += 1
            }
        }
        guard offsets.count == count else { return false }
        guard let keys = table.first("stss")?.content else { return true }
        guard let number = keys.number(4), number <= count, keys.count >= 8 + number * 4 else { return false }
        sync = (0..<number).compactMap { keys.number(8 + $0 * 4).map { $0 - 1 } }.filter { $0 >= 0 && $0 < count }
        return sync == sync.sorted()
    }

    /// Returns the time in seconds from which the times of an edit list are later than those of the samples.
    private static func shift(of list: ArraySlice<UInt8>, media: Double, movie: Double) -> Double {
        guard let version = list.number(0).map({ $0 >> 24 }), let count = list.number(4) else { return 0 }
        var shift = 0.0
        for index in 0..<min(count, 4) {
            let entry = 8 + index * (version == 1 ? 20 : 12)
            let (length, start) =
                version == 1 ? (list.long(entry), list.long(entry + 8)) : (list.number(entry), list.number(entry + 4))
            guard let length, let start else { return shift }
            // An empty edit delays the track; the first other one says where it starts.
            guard start == (version == 1 ? -1 : 0xffff_ffff) else { return shift - Double(start) / media }
            shift += Double(length) / max(1, movie)
        }
        return shift
    }

    /// Returns the parts of the file that the decoder needs for the frame at a time, joined if they are close to each
    /// other.
    /// - Parameters:
    ///   - seconds: The time from the beginning of the video.
    ///   - gap: The number of bytes up to which a gap between two parts is included.
    func parts(at seconds: Double, gap: Int) -> [Range<Int>] {
        let time = seconds - shift
        let start = times.lastIndex(notAfter: (time - Self.before) * scale)
        let key = sync.isEmpty ? start : sync.last(where: { $0 <= start }) ?? 0
        let at = times.lastIndex(notAfter: time * scale)
        let end = max(times.lastIndex(notAfter: (time + Self.after) * scale), at + Self.samplesAfter)
        let needed = Array(0..<min(Self.firstSamples, times.count)) + Array(key...min(max(end, key), times.count - 1))
        let ranges = needed.map { offsets[$0]..<offsets[$0] + sizes[$0] }.sorted { $0.lowerBound < $1.lowerBound }
        var joined: [Range<Int>] = []
        for range in ranges where !range.isEmpty {
            if let last = joined.last, range.lowerBound <= last.upperBound + gap {
                joined[joined.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
            } else {
                joined.append(range)
            }
        }
        return joined
    }
}

/// A box of the ISO base media file format (section 4.2).
struct MP4Box {
    let type: String
    let content: ArraySlice<UInt8>

    /// The header of a box: its type, its size including the header, and the size of the header.
    struct Header {
        let type: String
        /// 0 if the box extends to the end of the file.
        let size: Int
        let length: Int

        /// Parses a header; nil if it is incomplete or the size is impossible.
        init?(_ bytes: ArraySlice<UInt8>) {
            guard let size = bytes.number(0), let type = bytes.text(4) else { return nil }
            self.type = type
            length = size == 1 ? 16 : 8
            guard let whole = size == 1 ? bytes.long(8) : size, whole == 0 || whole >= length else { return nil }
            self.size = whole
        }
    }

    /// The boxes in the content of another one, at most 1024, up to the first one that does not fit.
    static func all(in bytes: ArraySlice<UInt8>) -> [MP4Box] {
        var (boxes, rest): ([MP4Box], ArraySlice<UInt8>) = ([], bytes)
        while boxes.count < 1024, let header = Header(rest), header.size > 0, header.size <= rest.count {
            boxes.append(
                MP4Box(type: header.type, content: rest.dropFirst(header.length).prefix(header.size - header.length)))
            rest = rest.dropFirst(header.size)
        }
        return boxes
    }

    /// Reads the units per second and the duration of a movie or a track (sections 8.2.2 and 8.4.2).
    static func timing(_ content: ArraySlice<UInt8>) -> (scale: Int, duration: Int)? {
        guard let version = content.number(0).map({ $0 >> 24 }), let scale = content.number(version == 1 ? 20 : 12),
            let duration = version == 1 ? content.long(24) : content.number(16)
        else { return nil }
        return (scale, duration)
    }
}

extension [MP4Box] {
    fileprivate func first(_ type: String) -> MP4Box? { first { $0.type == type } }
}

extension ArraySlice<UInt8> {
    /// Reads an unsigned number of 4 bytes; nil beyond the end.
    fileprivate func number(_ position: Int) -> Int? {
        guard position >= 0, position <= count - 4 else { return nil }
        return self[startIndex + position..<startIndex + position + 4].reduce(0) { $0 << 8 | Int($1) }
    }

    /// Reads a number of 8 bytes; nil beyond the end.
    fileprivate func long(_ position: Int) -> Int? {
        guard let high = number(position), let low = number(position + 4) else { return nil }
        return Int(Int64(bitPattern: UInt64(high) << 32 | UInt64(low)))
    }

    /// Reads a code of four characters.
    fileprivate func text(_ position: Int) -> String? {
        guard position >= 0, position <= count - 4 else { return nil }
        return String(decoding: self[startIndex + position..<startIndex + position + 4], as: UTF8.self)
    }
}

extension [Int] {
    /// Returns the index of the last value that is not greater; 0 if all are. The values are sorted.
    fileprivate func lastIndex(notAfter limit: Double) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if Double(self[middle]) <= limit { low = middle + 1 } else { high = middle }
        }
        return Swift.max(0, low - 1)
    }
}
