import CLinux
import Concurrency
import Formats
import Glibc
import HalcyonModel
import Subprocess

/// A video in memory, of which only the loaded parts take up space. It is read by one fetch.
struct VideoFile {
    /// Loads a part of the video, or all of it if the origin does not support ranges.
    typealias Load = (Range<Int>) async throws -> LoadedSource

    /// The file that ffmpeg reads. Parts that are not loaded are zeros.
    let file: MemoryFile
    /// The index that tells which parts a frame needs; nil if the whole video is loaded.
    private(set) var index: MP4Index?
    /// The size of the video in bytes.
    private let size: Int
    /// The parts that are loaded, sorted and disjoint.
    private var loaded: [Range<Int>]
    private let version: Validators

    /// The number of bytes that are loaded first.
    static let head = 1 << 20
    /// The size up to which a video is loaded as a whole.
    static let whole = 8 << 20
    /// The maximum size of an index.
    private static let longestIndex = 32 << 20
    /// The number of bytes up to which a gap between parts is loaded too, rather than with another request.
    private static let gap = 512 << 10
    private static let mostBoxes = 64

    /// Creates a video from all its bytes. The call copies them, so do not make it on the cooperative pool.
    /// - Throws: ``JobError`` `provider_error` if memory or descriptors are exhausted.
    init(whole bytes: [UInt8]) throws(JobError) {
        file = try MemoryFile.holding(bytes)
        index = nil
        size = bytes.count
        loaded = [0..<bytes.count]
        version = Validators()
    }

    /// Creates a video from its first part.
    /// - Returns: nil if the response is not a part that starts at 0.
    init?(_ first: LoadedSource) throws(JobError) {
        guard let range = first.range, range.first == 0, range.last + 1 == first.body.count, let total = range.total,
            total >= first.body.count
        else { return nil }
        file = try MemoryFile.holding(first.body)
        guard ftruncate(file.descriptor, total) == 0 else { throw .noMemoryFile(errno) }
        size = total
        loaded = [0..<first.body.count]
        version = first.validators
    }

    /// True if all bytes are loaded.
    var isWhole: Bool { loaded == [0..<size] }

    /// The number of bytes that are loaded.
    var loadedBytes: Int { loaded.reduce(0) { $0 + $1.count } }

    /// Loads the rest of a short video, or else its index.
    /// - Returns: False if the video is long and has no index that can be used.
    mutating func prepare(_ load: Load) async throws -> Bool {
        if size <= Self.whole {
            try await need(0..<size, load)
            return true
        }
        guard let place = try await findIndex(load) else { return false }
        index = MP4Index(moov: try bytes(of: place), fileSize: size)
        return index != nil
    }

    /// Loads the parts that the decoder needs for the frame at a time.
    /// - Parameter limit: The maximum number of bytes to load of the video.
    mutating func prepare(at seconds: Double, limit: Int, _ load: Load) async throws {
        guard let index, !isWhole else { return }
        for part in index.parts(at: seconds, gap: Self.gap) {
            let part = part.clamped(to: 0..<size)
            guard loadedBytes + part.count <= limit else {
                throw JobError(
                    .tooLarge,
                    "the frame needs more than \(limit) bytes of the video, the limit set by sources.video.maximumBytes"
                )
            }
            try await need(part, load)
        }
    }

    /// Finds the content of the box `moov`, which may be at the beginning or at the end, and loads it. nil if the file
    /// has none, or is not one of the ISO base media format.
    private mutating func findIndex(_ load: Load) async throws -> Range<Int>? {
        var position = 0
        for _ in 0..<Self.mostBoxes where position <= size - 16 {
            // The box after a long one is likely the index, at the end of the file.
            let ahead = min(size, position + (size - position <= Self.whole / 8 ? size : 64 << 10))
            try await need(position..<(isLoaded(position..<position + 16) ? position + 16 : ahead), load)
            let header = MP4Box.Header(try bytes(of: position..<position + 16)[...])
            guard let header, header.size >= header.length, header.size <= size - position else { return nil }
            switch header.type {
            case "moov":
                guard header.size <= Self.longestIndex else { return nil }
                let content = position + header.length..<position + header.size
                try await need(content, load)
                return content
            case "ftyp", "wide", "free", "skip", "mdat", "pnot", "uuid", "udta", "pdin", "meta":
                position += header.size
            default: return nil
            }
        }
        return nil
    }

    private func isLoaded(_ range: Range<Int>) -> Bool {
        loaded.contains { $0.lowerBound <= range.lowerBound && $0.upperBound >= range.upperBound }
    }

    /// Loads what is missing of a range.
    private mutating func need(_ range: Range<Int>, _ load: Load) async throws {
        var missing = [range]
        for part in loaded {
            missing = missing.flatMap { gap in
                [
                    gap.lowerBound..<max(gap.lowerBound, min(gap.upperBound, part.lowerBound)),
                    min(gap.upperBound, max(gap.lowerBound, part.upperBound))..<gap.upperBound,
                ]
            }.filter { !$0.isEmpty }
        }
        for part in missing {
            let answer = try await load(part)
            guard let found = answer.range, found.first == part.lowerBound, found.last + 1 == part.upperBound,
                answer.body.count == part.count, found.total == size, answer.validators.isSameVersion(as: version)
            else {
                throw JobError(.httpError, "the video changed while parts of it were loaded", isRetryable: true)
            }
            try await write(answer.body, at: part.lowerBound)
            loaded.append(part)
        }
        loaded.sort { $0.lowerBound < $1.lowerBound }
        loaded = loaded.reduce(into: []) { joined, part in
            if let last = joined.last, last.upperBound >= part.lowerBound {
                joined[joined.count - 1] = last.lowerBound..<max(last.upperBound, part.upperBound)
            } else {
                joined.append(part)
            }
        }
    }

    private func write(_ bytes: [UInt8], at position: Int) async throws {
        try await blocking { [file] () throws(JobError) in
            guard pwrite(file.descriptor, bytes, bytes.count, position) == bytes.count else {
                throw .noMemoryFile(errno)
            }
        }
    }

    private func bytes(of range: Range<Int>) throws(JobError) -> [UInt8] {
        let bytes = [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            count = max(0, pread(file.descriptor, buffer.baseAddress!, range.count, range.lowerBound))
        }
        guard bytes.count == range.count else { throw .noMemoryFile(errno) }
        return bytes
    }
}

extension LoadedSource {
    /// True if the body is a part of the source. There is no status without HTTP.
    var isPart: Bool { status == 206 || status == nil && headers.first("Content-Range") != nil }

    /// The range of the body in the whole source, if it is a part of it.
    fileprivate var range: (first: Int, last: Int, total: Int?)? {
        isPart ? headers.first("Content-Range").flatMap(RangeResume.range) : nil
    }
}

extension Validators {
    /// True if nothing shows that two parts belong to different versions of a source.
    fileprivate func isSameVersion(as other: Validators) -> Bool {
        etag == other.etag && lastModified == other.lastModified
    }
}
