import Concurrency
import Formats
import Foundation
import HalcyonModel
import Subprocess
import TestSupport
import Testing
import Vips

@testable import HalcyonSources

/// Videos of which only parts are loaded, contact sheets and previews.
@Suite(.limitedParallelism, .needsFFmpeg) struct VideoPartTests {
    /// A long video whose samples are in its middle, and whose index is at its beginning or its end. The rest are holes.
    private static func writeLongVideo(to path: String, indexFirst: Bool, size: Int = 2 << 30) async throws {
        let clip = try await TestClip.mp4()
        var boxes: [String: [UInt8]] = [:]
        var (position, samples) = (0, 0)
        while position < clip.count {
            let size = clip[position..<position + 4].reduce(0) { $0 << 8 | Int($1) }
            let type = String(decoding: clip[position + 4..<position + 8], as: UTF8.self)
            boxes[type] = Array(clip[position..<position + size])
            if type == "mdat" { samples = position + 8 }
            position += size
        }
        let middle = size / 2
        var index = try #require(boxes["moov"])
        let start = try #require(boxes["ftyp"])
        // The positions of the chunks move with the samples.
        let table = try #require(index.indices.dropLast(8).first { index[$0..<$0 + 4].elementsEqual("stco".utf8) })
        let count = index[table + 8..<table + 12].reduce(0) { $0 << 8 | Int($1) }
        for chunk in 0..<count {
            let place = table + 12 + chunk * 4
            let moved = index[place..<place + 4].reduce(0) { $0 << 8 | Int($1) } - samples + middle
            index.replaceSubrange(
                place..<place + 4, with: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: moved >> $0) })
        }
        let first = indexFirst ? start + index : start
        let length = size - first.count - (indexFirst ? 0 : index.count)
        let header: [UInt8] =
            [0, 0, 0, 1] + Array("mdat".utf8)
            + (0..<8).map { UInt8(truncatingIfNeeded: length >> (56 - $0 * 8)) }
        #expect(FileManager.default.createFile(atPath: path, contents: Data(first + header)))
        let file = try FileHandle(forWritingTo: URL(filePath: path))
        try file.truncate(atOffset: UInt64(size))
        try file.seek(toOffset: UInt64(middle))
        try file.write(contentsOf: Data(try #require(boxes["mdat"]).dropFirst(8)))
        if !indexFirst {
            try file.seek(toOffset: UInt64(size - index.count))
            try file.write(contentsOf: Data(index))
        }
        try file.close()
    }

    private static func options(_ options: inout SourceOptions) { options.policy = AddressPolicy(allow: ["127.0.0.1"]) }

    /// The bytes that nginx has sent, and the number of requests.
    private static func sent(_ origin: Nginx, atLeast count: Int) async throws -> (bytes: Int, requests: [String]) {
        try await until("the requests are logged") { origin.requests().count >= count }
        let requests = origin.requests()
        return (requests.compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }.reduce(0, +), requests)
    }

    @Test(arguments: [true, false]) func loadsOnlyPartsOfALongVideo(indexFirst: Bool) async throws {
        let folder = TemporaryFolder("video")
        try await Self.writeLongVideo(to: "\(folder.path)/long.mp4", indexFirst: indexFirst)
        let origin = try await Nginx.start(serving: folder.path, "add_header Cache-Control max-age=77;")
        for (seconds, color) in [(0.0, "red"), (1.5, "green"), (2.5, "blue")] {
            let before = origin.requests().count
            let source = Source.video(try VideoSource(try Source("\(origin.url)/long.mp4"), seconds: seconds))
            let frame = try await withLoader(Self.options) { try await $0.load(source) }
            #expect(try await Self.color(frame.body, 40, 20) == color)
            #expect(frame.status == 200 && frame.headers.first("Content-Range") == nil)
            #expect(frame.headers.first("Cache-Control") == "max-age=77" && frame.validators.etag != nil)
            #expect(String(decoding: frame.body, as: UTF8.self).contains("halcyon-video\0mpeg4 3000"))
            let (bytes, requests) = try await Self.sent(origin, atLeast: before + (indexFirst ? 2 : 3))
            #expect(requests.allSatisfy { $0.hasPrefix("GET /long.mp4 206 ") }, "\(requests)")
            #expect(requests.count - before <= 4, "\(requests)")
            #expect(bytes < (requests.count) * (1 << 20), "\(bytes) bytes")
        }
        let (bytes, _) = try await Self.sent(origin, atLeast: 6)
        #expect(bytes < 8 << 20, "three frames took \(bytes) bytes")
        // The conditional request needs no part.
        let source = Source.video(try VideoSource(try Source("\(origin.url)/long.mp4"), seconds: 0))
        try await withLoader(Self.options) { loader in
            let frame = try await loader.load(source)
            guard case .notModified = try await loader.load(source, ifNoneMatch: frame.validators) else {
                Issue.record("the video was loaded again")
                return
            }
        }
        await origin.stop()
        await folder.remove()
    }

    @Test(arguments: [true, false]) func loadsOnlyPartsOfAFile(indexFirst: Bool) async throws {
        let folder = TemporaryFolder("video")
        try await Self.writeLongVideo(to: "\(folder.path)/long.mp4", indexFirst: indexFirst)
        folder.write(try await TestClip.mp4(), to: "short.mp4")
        folder.write([], to: "empty.mp4")
        try await withLoader({
            $0.fileRoots = [folder.path]
            $0.video.maximumBytes = 4 << 20
        }) { loader in
            for (seconds, color) in [(0.0, "red"), (2.5, "blue")] {
                for name in ["long", "short"] {
                    let file = try Source("file://\(folder.path)/\(name).mp4")
                    let frame = try await loader.load(.video(try VideoSource(file, seconds: seconds)))
                    #expect(try await Self.color(frame.body, 40, 20) == color)
                    #expect(frame.status == nil && frame.headers.first("Content-Range") == nil)
                    #expect(frame.validators.etag != nil)
                }
            }
            let empty = Source.video(try VideoSource(try Source("file://\(folder.path)/empty.mp4"), seconds: 0))
            #expect(try await loader.failure(of: empty)?.code == .providerError)
            // A whole file is limited as before.
            let whole = try Source("file://\(folder.path)/long.mp4")
            #expect(try await loader.failure(of: whole)?.code == .tooLarge)
        }
        await folder.remove()
    }

    @Test func loadsOnlyPartsOfAnObject() async throws {
        let folder = TemporaryFolder("video")
        try await Self.writeLongVideo(to: "\(folder.path)/long.mp4", indexFirst: false, size: 40 << 20)
        let store = try await S3Server.start(["videos/long.mp4": folder.read("long.mp4")])
        let source = Source.video(try VideoSource(try Source("s3://videos/long.mp4"), seconds: 1.5))
        try await withLoader({
            Self.options(&$0)
            $0.s3.endpoint = try? WebURL("http://127.0.0.1:\(store.port)")
            $0.s3.region = S3Server.region
            $0.s3.credentials = .init(accessKey: S3Server.accessKey, secretKey: S3Server.secretKey)
            // The whole video is too large.
            $0.video.maximumBytes = 4 << 20
        }) { loader in
            let frame = try await loader.load(source)
            #expect(try await Self.color(frame.body, 40, 20) == "green")
            #expect((3...4).contains(store.requests.count), "\(store.requests)")
        }
        await store.stop()
        await folder.remove()
    }

    @Test func limitsTheBytesThatAreLoaded() async throws {
        let folder = TemporaryFolder("video")
        try await Self.writeLongVideo(to: "\(folder.path)/long.mp4", indexFirst: false)
        let origin = try await Nginx.start(
            serving: folder.path, "location = /whole.mp4 { alias \(folder.path)/long.mp4; max_ranges 0; }")
        // An origin without ranges answers with the whole video, which is too long.
        for (path, limit) in [("whole.mp4", 64 << 20), ("long.mp4", 1 << 20)] {
            let source = Source.video(try VideoSource(try Source("\(origin.url)/\(path)"), seconds: 1))
            try await withLoader({
                Self.options(&$0)
                $0.video.maximumBytes = limit
            }) { loader in
                let failure = try #require(try await loader.failure(of: source))
                #expect(
                    failure.code == .tooLarge && failure.message.contains("sources.video.maximumBytes"), "\(failure)")
            }
        }
        // Neither the format nor the damage of a long file makes it a small one.
        #expect(FileManager.default.createFile(atPath: "\(folder.path)/zeros", contents: Data(count: 100)))
        let file = try FileHandle(forWritingTo: URL(filePath: "\(folder.path)/zeros"))
        try file.truncate(atOffset: 100 << 20)
        try file.close()
        try await withLoader(Self.options) { loader in
            let source = Source.video(try VideoSource(try Source("\(origin.url)/zeros"), seconds: 1))
            #expect(try await loader.failure(of: source)?.code == .tooLarge)
        }
        await origin.stop()
        await folder.remove()
    }

    @Test func noticesThatTheVideoChanges() async throws {
        func part(_ range: Range<Int>, tag: String, total: Int = 4 << 20) -> LoadedSource {
            var headers: HTTPFields = ["ETag": tag]
            headers["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total)"
            return LoadedSource(
                body: [UInt8](repeating: 1, count: range.count), headers: headers, status: 206, completedAt: 0)
        }
        let first = part(0..<1 << 20, tag: "\"a\"")
        var video = try #require(try VideoFile(first))
        #expect(try await video.prepare { part($0, tag: "\"a\"") } && video.isWhole)
        for other in [
            part(1 << 20..<4 << 20, tag: "\"b\""), part(1 << 20..<4 << 20, tag: "\"a\"", total: 5 << 20),
            part(0..<9, tag: "\"a\""),
        ] {
            var changed = try #require(try VideoFile(first))
            let failure = await #expect(throws: JobError.self) { _ = try await changed.prepare { _ in other } }
            #expect(failure?.isRetryable == true && failure?.message.contains("changed") == true)
        }
        // Not a first part.
        #expect(try VideoFile(part(5..<10, tag: "\"a\"")) == nil)
        #expect(try VideoFile(LoadedSource(body: [1], status: 200, completedAt: 0)) == nil)
    }

    /// A damaged index leads to an error, or to parts that lie anywhere, but never to a crash.
    @Test func survivesDamagedIndexes() async throws {
        let clip = try await TestClip.mp4()
        let start = try #require(clip.indices.dropLast(8).last { clip[$0..<$0 + 4].elementsEqual("moov".utf8) })
        let moov = Array(clip[(start + 4)...])
        let index = try #require(MP4Index(moov: moov, fileSize: clip.count))
        #expect(index.codec == "mpeg4" && abs(index.duration - 3) < 0.01)
        #expect(index.parts(at: 1.5, gap: 1 << 20).count == 1)
        #expect(index.parts(at: 86_400, gap: 0).allSatisfy { $0.upperBound <= clip.count })
        await blocking {
            var generator = SeededNumbers(seed: 5)
            for round in 0..<3000 {
                var damaged = moov
                for _ in 0..<Int.random(in: 1...4, using: &generator) {
                    let place = Int.random(in: 0..<damaged.count, using: &generator)
                    damaged[place] = [0, 1, 127, 128, 255, UInt8.random(in: 0...255, using: &generator)]
                        .randomElement(using: &generator)!
                }
                if round.isMultiple(of: 7) { damaged.removeLast(Int.random(in: 1..<damaged.count, using: &generator)) }
                _ = MP4Index(moov: damaged, fileSize: clip.count)?.parts(at: 1.5, gap: 100)
            }
        }
        for bytes in [[], [0], [UInt8](repeating: 0, count: 4000), [UInt8](repeating: 255, count: 4000)] {
            #expect(MP4Index(moov: bytes, fileSize: 8000) == nil)
        }
    }

    /// A test process that hangs is the failure.
    @Test func countsBeyondTheSamplesCostNothing() async throws {
        let clip = try await TestClip.mp4()
        let start = try #require(clip.indices.dropLast(8).last { clip[$0..<$0 + 4].elementsEqual("moov".utf8) })
        for table in ["stts", "stsc"] {
            var moov = Array(clip[(start + 4)...])
            let place = try #require(moov.indices.dropLast(8).first { moov[$0..<$0 + 4].elementsEqual(table.utf8) })
            moov.replaceSubrange(place + 8..<place + 12, with: [255, 255, 255, 255])
            let times = await blocking { [moov] in MP4Index(moov: moov, fileSize: clip.count)?.parts(at: 1.5, gap: 9) }
            #expect(times?.isEmpty != true)
        }
    }

    @Test func indexCannotHaveMoreSamplesThanItsFileHasBytes() async throws {
        let clip = try await TestClip.mp4()
        let start = try #require(clip.indices.dropLast(8).last { clip[$0..<$0 + 4].elementsEqual("moov".utf8) })
        var moov = Array(clip[(start + 4)...])
        let sizes = try #require(moov.indices.dropLast(8).first { moov[$0..<$0 + 4].elementsEqual("stsz".utf8) })
        // Four million samples of one byte each.
        moov.replaceSubrange(sizes + 8..<sizes + 16, with: [0, 0, 0, 1, 0, 0x3d, 0x09, 0])
        #expect(MP4Index(moov: moov, fileSize: clip.count) == nil)
    }

    // MARK: Several frames

    /// Prints a contact sheet of a clip as rows of pixels, made by Pillow of frames that ffmpeg extracted at these
    /// times.
    private static let pillow = #"""
        import base64, io, json, subprocess, sys
        from PIL import Image
        path, columns, rows, width, *times = sys.argv[1:]
        columns, rows, width = int(columns), int(rows), int(width)
        sheet = None
        for index, time in enumerate(times):
            png = subprocess.run(["ffmpeg", "-loglevel", "error", "-ss", time, "-i", path, "-frames:v", "1", "-c:v", "png", "-f", "image2pipe", "-"], check=True, capture_output=True).stdout
            frame = Image.open(io.BytesIO(png)).convert("RGB")
            frame = frame.resize((width, round(frame.height * width / frame.width)), Image.Resampling.BOX)
            sheet = sheet or Image.new("RGB", (columns * frame.width, rows * frame.height))
            sheet.paste(frame, (index % columns * frame.width, index // columns * frame.height))
        print(json.dumps({"size": sheet.size, "pixels": base64.b64encode(sheet.tobytes()).decode()}))
        """#

    private static func python(_ program: String, _ arguments: [String]) async throws -> NSDictionary {
        let run = try await ChildProcess.run(
            try await PythonTools.interpreter(), ["-c", program] + arguments, timeLimit: .patience,
            outputLimit: 16 << 20)
        try #require(run.end == .exit(.code(0)), "\(run.errors)")
        return try #require(try JSONSerialization.jsonObject(with: Data(run.output)) as? NSDictionary)
    }

    private static func color(_ file: [UInt8], _ x: Int, _ y: Int, frame: Int = 0) async throws -> String {
        let (image, _) = try await Self.pixels(file, frame: frame)
        return
            switch image.pixels[(y * image.width + x) * image.bands..<(y * image.width + x) * image.bands + 3].map({
                $0 > 127
            })
        {
        case [true, false, false]: "red"
        case [false, true, false]: "green"
        case [false, false, true]: "blue"
        default: "another"
        }
    }

    private struct Decoded: Sendable {
        let width, height, bands: Int
        let pixels: [UInt8]
    }

    private static func pixels(_ file: [UInt8], frame: Int = 0) async throws -> (Decoded, delays: [Int]) {
        try await blocking {
            VipsLibrary.start()
            defer { VipsLibrary.endThread() }
            let encoded = try EncodedImage(file)
            let image = try encoded.format == .webp ? encoded.open(["page": .int(frame)]) : encoded.open()
            return (
                Decoded(width: image.width, height: image.height, bands: image.bands, pixels: try image.pixels()),
                image.frameDelays
            )
        }
    }

    @Test func contactSheetsAreThoseOfPillow() async throws {
        let folder = TemporaryFolder("sheet")
        let clip = folder.write(try await TestClip.mp4(), to: "clip.mp4")
        try await withLoader({ $0.fileRoots = [folder.path] }) { loader in
            for (columns, rows, width) in [(3, 2, 32), (1, 1, 64), (2, 2, 100)] {
                let sheet = VideoSource.ContactSheet(columns: columns, rows: rows, width: width)
                let source = Source.video(try VideoSource(try Source("file://\(clip)"), .contactSheet(sheet)))
                let found = try await Self.pixels(try await loader.load(source).body).0
                let count = columns * rows
                let times = (0..<count).map { "\(3 * (Double($0) + 0.5) / Double(count))" }
                let expected = try await Self.python(
                    Self.pillow, [clip, "\(columns)", "\(rows)", "\(width)"] + times)
                #expect(expected["size"] as? [Int] == [found.width, found.height])
                let text = try #require(expected["pixels"] as? String)
                let wanted = Array(try #require(Data(base64Encoded: text)))
                try #require(wanted.count == found.pixels.count)
                let distance = zip(wanted, found.pixels).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
                #expect(distance < 4 * wanted.count, "\(columns)×\(rows) of \(width)")
            }
        }
        await folder.remove()
    }

    @Test func previewsShowTheWholeVideo() async throws {
        let folder = TemporaryFolder("sheet")
        let clip = folder.write(try await TestClip.mp4(isTurned: true), to: "clip.mp4")
        let preview = VideoSource.Preview(frames: 3, duration: 1.5, width: 16)
        let source = Source.video(try VideoSource(try Source("file://\(clip)"), .preview(preview)))
        let file = try await withLoader({ $0.fileRoots = [folder.path] }) { try await $0.load(source).body }
        let (image, delays) = try await Self.pixels(file)
        #expect(image.width == 16 && image.height == 32 && delays == [500, 500, 500])
        for (index, color) in ["red", "green", "blue"].enumerated() {
            #expect(try await Self.color(file, 4, 20, frame: index) == color)
        }
        await folder.remove()
    }

    /// The sheet of a long video takes the parts around its frames, and the time of all frames is limited.
    @Test func sheetsOfLongVideosLoadParts() async throws {
        let folder = TemporaryFolder("video")
        try await Self.writeLongVideo(to: "\(folder.path)/long.mp4", indexFirst: false)
        let origin = try await Nginx.start(serving: folder.path)
        let sheet = VideoSource.ContactSheet(columns: 3, rows: 1, width: 64)
        let source = Source.video(try VideoSource(try Source("\(origin.url)/long.mp4"), .contactSheet(sheet)))
        let frame = try await withLoader(Self.options) { try await $0.load(source) }
        for (index, color) in ["red", "green", "blue"].enumerated() {
            #expect(try await Self.color(frame.body, index * 64 + 40, 20) == color)
        }
        let (bytes, _) = try await Self.sent(origin, atLeast: 3)
        #expect(bytes < 4 << 20, "\(bytes)")
        try await withLoader({
            Self.options(&$0)
            $0.video.time = .milliseconds(1)
        }) { loader in
            let failure = try await loader.failure(of: source)
            #expect(failure?.code == .timeout && failure?.message.contains("sources.video.timeout") == true)
        }
        await origin.stop()
        await folder.remove()
    }

    @Test func filesWithoutVideoHaveNoFrames() async throws {
        try await withLoader { loader in
            let text = Source.data(try DataSource(Array("no video".utf8), name: "text"))
            for selection in [VideoSource.Selection.contactSheet(.init()), .preview(.init())] {
                let failure = try await loader.failure(of: .video(try VideoSource(text, selection)))
                #expect(failure?.code == .providerError && failure?.isRetryable == false)
            }
        }
    }
}
