import HalcyonModel
import TestSupport

/// Generates random events that cover all choices. The same seed gives the same events.
struct RandomEvents {
    private var generator: SeededNumbers

    init(seed: UInt64) {
        generator = SeededNumbers(seed: seed)
    }

    /// Returns the JSON of an event of a job, a purge or a batch.
    mutating func json() -> [UInt8] {
        Int.random(in: 0..<8, using: &generator) == 0 ? nextOfBatch().json : next().json
    }

    mutating func next() -> Event {
        let time = Double.random(in: 0...4e9, using: &generator)
        if Int.random(in: 0..<8, using: &generator) == 0 {
            return Event(id: text(), time: time, subject: maybe(text()), jobID: nil, body: .purged(purged()))
        }
        let body = body()
        let warnings: [String] = pick([[], ["unknown field \"widht\""], ["a", "b"]])
        return Event(
            id: text(), time: time, subject: maybe(text()), jobID: text(),
            batch: maybe(BatchMembership(batch: pick(Self.batches), index: maybe(count() - 1))),
            echo: Job.PassthroughMetadata(
                metadata: maybe(value()), placeholder: maybe(value()), altText: maybe(value())),
            preset: maybe(PresetReference("card", version: Int64(count()))),
            traceparent: maybe("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            warnings: body.kind.isTerminal ? warnings : [], body: body)
    }

    private mutating func nextOfBatch() -> BatchEvent {
        let time = Int64.random(in: 0...4_000_000_000_000, using: &generator)
        var batch = Batch(id: pick(Self.batches), tenant: maybe("shop-7"), owner: maybe("a"), created: time)
        batch.total = maybe(pick([0, count(), Batch.highestIndex + 1]))
        (batch.counts.ready, batch.counts.failed) = (count(), pick([0, count()]))
        (batch.counts.cancelled, batch.counts.superseded) = (count(), count())
        (batch.cancelled, batch.completed) = (maybe(time), maybe(time))
        return BatchEvent(pick(BatchEvent.Kind.allCases), of: batch, at: time)
    }

    private static let batches = ["b", "A-b_c.9:7", String(repeating: "b", count: 128)]

    private mutating func purged() -> Purged {
        Purged(
            pick([.source(text()), .tag(text()), .key(SampleEvents.key), .tenant("shop-7")]), of: maybe("shop-7"),
            count: count() - 1, cacheTags: pick([[], ["shop-7/a%20b"], ["a", "b"]]))
    }

    private mutating func body() -> Event.Body {
        switch Int.random(in: 0..<6, using: &generator) {
        case 0: return .started
        case 2: return .cancelled
        case 4: return .progress(LoadProgress(received: count() - 1, total: maybe(count())), attempt: count())
        case 3: return .superseded(by: Int64.random(in: 0...Job.DisplaySlot.highestGeneration, using: &generator))
        case 1:
            let failure = JobError(pick(JobErrorCode.allCases), text(), isRetryable: maybe(.random(using: &generator)))
            return .failed(failure, attempts: Int.random(in: 1...9, using: &generator), timings: timings())
        default:
            let origin = pick([CacheStatus.memory, .sourceCache, .network, .coalesced])
            var ready = Ready(
                results: (0..<Int.random(in: 1...3, using: &generator)).map { _ in result() },
                failures: maybe([JobError(pick(JobErrorCode.allCases), "words", variant: 3)]) ?? [], origin: origin,
                timings: timings(), attempts: Int.random(in: 1...4, using: &generator))
            ready.alternative = maybe("https://mirror.example.org/cat.jpg")
            ready.fallback = maybe(JobError(pick(JobErrorCode.allCases), text()))
            return .ready(ready)
        }
    }

    private mutating func result() -> ImageResult {
        ImageResult(
            key: SampleEvents.key, facts: facts(), expiresAt: maybe(Double.random(in: 0...4e9, using: &generator)),
            inline: maybe([UInt8](repeating: 7, count: count())), name: maybe("small"),
            uploadedTo: maybe("https://bucket.example.org/items/7/small.webp"))
    }

    private mutating func facts() -> ResultMetadata {
        ResultMetadata(
            width: count(), height: count(), format: pick(ImageFormat.writable), bytes: count(),
            sha256: String(repeating: "0a", count: 32),
            frames: maybe(count()), blurhash: maybe("LEHV6nWB2yk8pyo0adR*.7kCMdnj"), dominantColor: maybe("#8a6f5c"),
            trim: maybe(PixelRect(x: 0, y: 3, width: 7, height: 1)),
            palette: maybe(["#8a6f5c", "#000000"]), thumbhash: maybe("XRgODZpwd4eBiIiHiHiIh3iACPeI"),
            phash: maybe("9c2e63d1b04f5a78"),
            faces: maybe([DetectedFace(PixelRect(x: 4, y: 0, width: 9, height: 12), confidence: 0.9375)]),
            info: maybe(Array(Self.info.utf8)),
            encoding: maybe(
                EncodingChoice(
                    quality: maybe(62), colors: maybe(16), similarity: maybe(0.981234), encodings: count())),
            source: SourceMetadata(
                status: maybe(200), etag: maybe(text()), bytes: count(),
                format: pick(ImageFormat.allCases.filter { $0 != .json }),
                width: count(), height: count(), isTruncated: Bool.random(using: &generator)))
    }

    private static let info =
        #"{"format":"jpeg","mediaType":"image/jpeg","bytes":12,"width":4,"height":3,"orientation":6,"#
        + #""colorSpace":"rgb","bitsPerSample":8,"alpha":false,"profile":{"name":"Display P3","colorSpace":"RGB"},"#
        + #""exif":{"make":"Halcyon","iso":400,"flash":true},"location":{"latitude":-33.5,"longitude":151,"altitude":2}}"#

    private mutating func timings() -> Timings {
        var timings = Timings()
        for stage in Timings.Stage.allCases { timings[stage] = maybe(Double.random(in: 0...1e6, using: &generator)) }
        return timings
    }

    private mutating func count() -> Int { Int.random(in: 1...100_000, using: &generator) }

    private mutating func text() -> String {
        pick(["a", "\u{0}\u{1f}\"\\/\n\t\r\u{7f}", "é\u{301}😀\u{2028}", String(repeating: "x", count: 300)])
    }

    private mutating func value() -> [UInt8] {
        pick(["null", "0", "\"é\"", #"{"a":[1,{"b":null}]}"#, "[]"].map { Array($0.utf8) })
    }

    private mutating func pick<Value>(_ values: [Value]) -> Value { values.randomElement(using: &generator)! }

    private mutating func maybe<Value>(_ value: Value) -> Value? { Bool.random(using: &generator) ? value : nil }
}
