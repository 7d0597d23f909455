import Formats
import HalcyonCoding
import HalcyonModel
import Testing

/// Decoding of each job field: valid values and error messages.
@Suite struct JobFieldTests {
    @Test func onlySourceIsRequired() throws {
        let job = try read("")
        #expect(job.id == "halcyon.jobs-0-7")
        #expect(job.source.text == "https://example.org/cat.jpg")
        #expect(job.variant == Variant(sizing: Sizing(goal: .sizer(.natural))))
        #expect(job.maxAge == 0)
        #expect(job.delivery == .reference)
        #expect(job.deadline == nil)
        #expect(job.echo == Job.PassthroughMetadata())
        #expect(job.tags == [] && job.slot == nil)
    }

    @Test func readsEveryField() throws {
        let job = try read(
            """
            "id":"j","width":400,"height":300.5,"screenScale":2,"contentMode":"center","scaleOptions":"fitCropsExcess",\
            "cropRect":{"x":0.5,"y":0,"width":0.25,"height":1},"interpolationQuality":"low","format":"webp","quality":70,\
            "lossless":true,"effort":3,"progressive":true,"stripMetadata":false,"keepProfile":true,"frames":5,"tolerance":"truncated",\
            "gravity":{"x":0.25,"y":0.3333333},"upscale":false,"background":"#ff8800","processors":["flip"],\
            "blurhash":true,"dominantColor":true,"maxAge":60.5,"delivery":"inline","deadline":30,\
            "metadata":{"a":1},"placeholder":"p","altText":[1],"priority":"low",\
            "tags":["a","b","a"],"slot":"cell","generation":3
            """)
        #expect(job.tags == ["a", "b"])
        #expect(job.slot == Job.DisplaySlot(name: "cell", generation: 3))
        #expect(job.id == "j")
        #expect(job.variant.sizing.screenScale == 2)
        #expect(job.variant.sizing.cropRect == CropRect(x: 0.5, y: 0, width: 0.25, height: 1))
        #expect(
            job.variant.sizing.goal
                == .display(Display(width: 400, height: 300.5, contentMode: .center, scaleOptions: .fitCropsExcess)))
        #expect(job.variant.sizing.gravity == .focalPoint(UnitPoint(x: 0.25, y: 0.333333)))
        #expect(job.variant.sizing.upscale == false)
        #expect(job.variant.interpolationQuality == .low)
        #expect(job.variant.background == CSSColor(red: 255, green: 136, blue: 0))
        #expect(job.variant.processors == [.flip(.horizontal)])
        #expect(job.variant.tolerance == .truncated)
        #expect(job.variant.findings == [.blurhash, .dominantColor])
        #expect(
            job.variant.output
                == OutputOptions(
                    format: .webp, quality: 70, lossless: true, effort: 3, progressive: true, stripMetadata: false,
                    keepProfile: true, frames: 5))
        #expect(job.maxAge == 60.5)
        #expect(job.delivery == .inline)
        #expect(job.deadline == .after(30))
        #expect(
            job.echo
                == Job.PassthroughMetadata(
                    metadata: Array(#"{"a":1}"#.utf8), placeholder: Array(#""p""#.utf8), altText: Array("[1]".utf8)))
    }

    @Test func readsTheOptionsOfEncodersAndSearches() throws {
        let output = try read(
            #"""
            "format":"best","quality":{"target":0.9712345678},"maximumBytes":50000,"allowResize":true,"nearLossless":true,\#
            "chromaSubsampling":"4:4:4","quantize":{"colors":16,"dither":0.5},"profile":"p3"
            """#
        ).variant.output
        #expect(
            output
                == OutputOptions(
                    choosesFormat: true, similarity: 0.971235, maximumBytes: 50_000, allowsResizing: true,
                    nearLossless: true, chromaSubsampling: ChromaSubsampling.full,
                    quantization: Quantization(colors: 16, dither: 0.5), profile: .p3))
        #expect(try read(#""bitDepth":16,"format":"png""#).variant.output == OutputOptions(format: .png, bitDepth: 16))
        #expect(try read(#""bitDepth":12.0,"format":"avif","maximumBytes":9000"#).variant.output.bitDepth == 12)
        #expect(try read(#""bitDepth":8"#).variant.output == OutputOptions())
        #expect(try read(#""quantize":true"#).variant.output.quantization == Quantization(colors: 256, dither: 1))
        #expect(try read(#""quantize":false"#).variant.output.quantization == nil)
        #expect(try read(#""profile":"srgb","chromaSubsampling":"auto""#).variant.output == OutputOptions())
        // A variant replaces a target by a number, and best by a format.
        let variant = try VariantFieldTests.variants(
            #""format":"best","quality":{"target":0.9},"variants":[{"format":"jpeg","quality":70}]"#)[0]
        #expect(variant.output == OutputOptions(format: .jpeg, quality: 70))
    }

    @Test(arguments: [
        (#""quality":{}"#, "quality: expected a target from 0.5 to 0.9999"),
        (#""quality":{"target":1}"#, "quality.target: expected 0.5 to 0.9999, found 1.0"),
        (#""quality":{"target":"high"}"#, "quality.target: expected a number, found a string"),
        (#""quality":{"least":0.9}"#, "quality.least: unknown member of a quality; expected target"),
        (#""quality":{"target":-1e300}"#, "quality.target: expected 0.5 to 0.9999, found -1e+300"),
        (
            #""quality":70,"format":"best""#,
            #"quality: with the format best, expected a target such as {"target": 0.98}"#
        ),
        (#""keepProfile":true,"profile":"p3""#, "profile: cannot be combined with keepProfile"),
        (#""quantize":8"#, "quantize: expected 2, 4, 16 or 256 colors, found 8"),
        (#""quantize":{"colors":3}"#, "quantize.colors: expected 2, 4, 16 or 256 colors, found 3"),
        (#""maximumBytes":0"#, "maximumBytes: expected 1 to 1073741824, found 0"),
        (#""chromaSubsampling":"4:2:2""#, #"chromaSubsampling: expected auto, 4:4:4 or 4:2:0, found "4:2:2""#),
        (#""bitDepth":10"#, "bitDepth: expected 8, 12 or 16 bits per sample, found 10"),
        (#""bitDepth":17"#, "bitDepth: expected 8 to 16, found 17"),
        (#""bitDepth":16"#, "bitDepth: 16 bits require the format png or tiff or jxl"),
        (#""bitDepth":16,"format":"jpeg""#, "bitDepth: 16 bits require the format png or tiff or jxl"),
        (#""bitDepth":16,"format":"best""#, "bitDepth: 16 bits require the format png or tiff or jxl"),
        (#""bitDepth":12,"format":"png""#, "bitDepth: 12 bits require the format avif"),
        (
            #""bitDepth":16,"format":"png","processors":["flip"]"#,
            "bitDepth: 16 bits cannot be combined with processors"
        ),
        (
            #""bitDepth":16,"format":"tiff","before":["flip"]"#,
            "bitDepth: 16 bits cannot be combined with before"
        ),
        (
            #""bitDepth":16,"format":"png","linearLight":true"#,
            "bitDepth: 16 bits cannot be combined with linearLight"
        ),
        (
            #""bitDepth":16,"format":"png","quantize":16"#,
            "bitDepth: 16 bits cannot be combined with quantize"
        ),
        (
            #""bitDepth":16,"format":"png","maximumBytes":9000"#,
            "bitDepth: 16 bits cannot be combined with maximumBytes"
        ),
        (
            #""bitDepth":12,"format":"avif","quality":{"target":0.9}"#,
            "bitDepth: 12 bits cannot be combined with a target for quality"
        ),
        (#""profile":"P3""#, #"profile: expected srgb or p3, found "P3""#),
    ])
    func explainsInvalidOptionsOfEncoders(fields: String, message: String) {
        #expect(rejection(fields)?.failure.message == message)
    }

    @Test func acceptsEveryContentModeAndAlias() throws {
        let aliases: [(String, ContentMode)] = [
            ("fill", .scaleToFill), ("contain", .scaleAspectFit), ("cover", .scaleAspectFill),
        ]
        for (word, mode) in ContentMode.allCases.map({ ($0.rawValue, $0) }) + aliases {
            let job = try read(#""width":4,"height":3,"contentMode":"\#(word)""#)
            #expect(job.variant.sizing.goal == .display(Display(width: 4, height: 3, contentMode: mode)))
        }
        #expect(ContentMode.allCases.count == 13)
    }

    @Test func acceptsEveryScaleOptionInterpolationAndFormat() throws {
        for options in ScaleOptions.allCases {
            let job = try read(#""width":4,"height":3,"scaleOptions":"\#(options.rawValue)""#)
            #expect(job.variant.sizing.goal == .display(Display(width: 4, height: 3, scaleOptions: options)))
        }
        for quality in InterpolationQuality.allCases {
            #expect(try read(#""interpolationQuality":"\#(quality.rawValue)""#).variant.interpolationQuality == quality)
        }
        for format in ImageFormat.writable {
            #expect(try read(#""format":"\#(format.rawValue)""#).variant.output.format == format)
        }
        #expect(try read(#""format":"auto""#).variant.output.format == nil)
    }

    /// Members of invalid jobs, and the beginning of the error message.
    static let faults: [(members: String, message: String)] = [
        (#""id":"""#, "id: expected 1 to 128 characters, none of them U+0000"),
        (#""id":"a\u0000b""#, "id: expected 1 to 128 characters, none of them U+0000"),
        (#""id":7"#, "id: expected a string, found a number"),
        (#""width":"400""#, "width: expected a number, found a string"),
        (#""width":0"#, "width: expected a number above 0"),
        (#""width":-4"#, "width: expected 0.0 to 65535.0, found -4.0"),
        (#""height":65535.5"#, "height: expected 0.0 to 65535.0, found 65535.5"),
        (#""height":1e300"#, "height: expected 0.0 to 65535.0, found 1e+300"),
        (#""screenScale":0.5"#, "screenScale: expected 1.0 to 4.0, found 0.5"),
        (#""screenScale":true"#, "screenScale: expected a number, found true or false"),
        (#""contentMode":"stretch""#, "contentMode: expected one of scaleToFill, scaleAspectFit, "),
        (#""contentMode":1"#, "contentMode: expected a string, found a number"),
        (#""scaleOptions":"both""#, "scaleOptions: expected one of fitLeavesExcessAndFillCropsExcess, "),
        (#""sizeForDisplay":0"#, "sizeForDisplay: expected true or false, found a number"),
        (#""interpolationQuality":"best""#, "interpolationQuality: expected one of none, low, "),
        (
            #""format":"jpg""#,
            "format: unsupported output format \"jpg\"; expected one of auto, best, jpeg, png, webp, avif, gif, tiff, jxl"
        ),
        (
            #""format":"heic""#,
            "format: unsupported output format \"heic\"; expected one of auto, best, jpeg, png, webp, avif, gif, tiff, jxl"
        ),
        (#""quality":0"#, "quality: expected 1 to 100, found 0"),
        (#""quality":80.5"#, "quality: expected a whole number"),
        (#""lossless":"yes""#, "lossless: expected true or false, found a string"),
        (#""effort":10"#, "effort: expected 0 to 9, found 10"),
        (#""progressive":1"#, "progressive: expected true or false, found a number"),
        (
            #""gravity":"north""#,
            "gravity: expected center, attention, entropy, faces, objects or {\"x\": 0…1, \"y\": 0…1}, found \"north\""
        ),
        (#""gravity":{"detect":"cats"}"#, "gravity.detect: expected one of faces, objects, found \"cats\""),
        (#""gravity":{"detect":"faces","x":1}"#, "gravity.x: unknown member; expected detect, fallback or confidence"),
        (#""gravity":{"detect":"faces","fallback":"objects"}"#, "gravity.fallback: cannot be another detection"),
        (#""gravity":{"detect":"faces","confidence":2}"#, "gravity.confidence: expected 0.0 to 1.0, found 2.0"),
        (#""gravity":{"x":0.5}"#, "gravity: expected x and y as fractions of the image"),
        (#""gravity":{"x":0.5,"y":1.1}"#, "gravity.y: expected 0.0 to 1.0, found 1.1"),
        (#""gravity":{"x":0.5,"y":1,"z":1}"#, "gravity.z: unknown member of a point; expected x or y"),
        (#""gravity":{"x":0.5,"y":1,"x":1}"#, "gravity.x: duplicate name"),
        (#""gravity":0.5"#, "gravity: expected a string, found a number"),
        (#""upscale":"no""#, "upscale: expected true or false, found a string"),
        (#""background":"blurple""#, "background: expected a CSS color such as white, #ff8800 or rgb("),
        (#""background":16711680"#, "background: expected a string, found a number"),
        (#""stripMetadata":1"#, "stripMetadata: expected true or false, found a number"),
        (#""tolerance":"lax""#, "tolerance: expected one of strict, truncated, found \"lax\""),
        (#""keepProfile":"p3""#, "keepProfile: expected true or false, found a string"),
        (#""frames":0"#, "frames: expected 1 to 65535, found 0"),
        (#""frames":65536"#, "frames: expected 1 to 65535, found 65536"),
        (#""frames":1.5"#, "frames: expected a whole number"),
        (#""page":0"#, "page: expected 1 to 65535, found 0"),
        (#""page":-1"#, "page: expected 1 to 65535, found -1"),
        (#""page":65536"#, "page: expected 1 to 65535, found 65536"),
        (#""page":1.5"#, "page: expected a whole number"),
        (#""page":"2""#, "page: expected a number, found a string"),
        (#""variants":[{"page":0}]"#, "variants[0].page: expected 1 to 65535, found 0"),
        (#""blurhash":"4x3""#, "blurhash: expected true or false, found a string"),
        (#""dominantColor":0"#, "dominantColor: expected true or false, found a number"),
        (#""info":1"#, #"info: expected true, false or an object such as {"location": true}"#),
        (#""info":{"location":"yes"}"#, "info.location: expected true or false, found a string"),
        (#""info":{"exif":true}"#, "info.exif: unknown option of info; expected location"),
        (#""maxAge":"60""#, "maxAge: expected a number, found a string"),
        (#""delivery":"email""#, "delivery: expected one of reference, inline, found \"email\""),
        (#""delivery":{}"#, "delivery: expected {\"put\": URL}"),
        (#""delivery":{"put":1}"#, "delivery.put: expected a string, found a number"),
        (#""delivery":{"put":"ftp://h/"}"#, "delivery.put: expected an http or https URL"),
        (#""delivery":{"put":"https://u:s3cr3t/x@h/"}"#, "delivery.put: expected an http or https URL"),
        (#""webhook":"https://u:s3cr3t/x@h/""#, "webhook: expected an http or https URL"),
        (#""delivery":{"post":"http://h/"}"#, "delivery.post: unknown delivery method; expected \"put\""),
        (
            #""delivery":{"put":"http://h/"},"variants":[{"width":1},{"width":2}]"#,
            "delivery.put: one URL for 2 variants; add a placeholder such as {variant}, or give each variant a URL"
        ),
        (#""tags":"a""#, "tags: expected an array, found a string"),
        (#""tags":["a",""]"#, "tags[1]: expected 1 to 128 bytes without control characters"),
        (#""tags":["\u001f"]"#, "tags[0]: expected 1 to 128 bytes without control characters"),
        (#""slot":"""#, "slot: expected 1 to 256 bytes"),
        (#""slot":"a","generation":-1"#, "generation: expected 0 to 9007199254740992, found -1"),
        (#""slot":"a","generation":9007199254740993"#, "generation: expected 0 to 9007199254740992, found"),
        (#""generation":1"#, "generation: requires a slot"),
        (#""generation":1,"slot":null"#, "generation: requires a slot"),
        (#""priority":"urgent""#, "priority: expected one of high, normal, low, found \"urgent\""),
    ]

    @Test(arguments: faults)
    func reportsInvalidFieldAndExpectedValue(members: String, message: String) throws {
        let rejected = try #require(rejection(members))
        #expect(rejected.failure.code == .invalidJob)
        #expect(rejected.failure.message.hasPrefix(message), "\(rejected.failure.message)")
        #expect(!rejected.failure.message.contains("s3cr3t"))
        #expect(!rejected.failure.isRetryable)
    }

    @Test func limitsIDTo128UnicodeScalars() throws {
        for character in ["a", "é", "\u{1f600}"] {
            #expect(try read(#""id":"\#(String(repeating: character, count: 128))""#).id.unicodeScalars.count == 128)
            #expect(rejection(#""id":"\#(String(repeating: character, count: 129))""#) != nil)
        }
        // One grapheme cluster of 2001 scalars.
        #expect(rejection(#""id":"a\#(String(repeating: "\u{301}", count: 2000))""#) != nil)
    }

    @Test func acceptsIntegersInFloatingPointNotation() throws {
        #expect(try read(#""quality":8e1"#).variant.output.quality == 80)
        #expect(try read(#""effort":4.0"#).variant.output.effort == 4)
        #expect(try read(#""width":4e2"#).variant == read(#""width":400"#).variant)
    }

    @Test(arguments: [
        ("30", Job.Time.after(30)), ("0", .after(0)), ("0.25", .after(0.25)), ("315360000", .after(315_360_000)),
        (#""2026-11-21T10:31:07Z""#, .at(1_795_257_067)), (#""2026-11-21T12:31:07.5+02:00""#, .at(1_795_257_067.5)),
    ])
    func readsDeadlinesAsSecondsOrTimestamps(json: String, deadline: Job.Time) throws {
        #expect(try read(#""deadline":\#(json)"#).deadline == deadline)
    }

    @Test(arguments: [
        "-1", "315360001", "true", "\"\"", "\"30\"", "\"soon\"", "\"2026-11-21\"", "\"2026-02-30T00:00:00Z\"",
        "\"2026-11-21T10:31:07\"", "[30]",
    ])
    func rejectsInvalidDeadlines(json: String) throws {
        #expect(try #require(rejection(#""deadline":\#(json)"#)).failure.message.hasPrefix("deadline: expected "))
    }

    @Test func readsTheStartOfJobs() throws {
        #expect(try read(#""width":4"#).notBefore == nil)
        #expect(try read(#""notBefore":30"#).notBefore == .after(30))
        #expect(try read(#""notBefore":"2001-01-01T00:00:00Z""#).notBefore == .at(978_307_200))
        #expect(try read(#""notBefore":2592000"#).notBefore == .after(2_592_000))
        let distant = Timestamp(seconds: Timestamp.now.seconds + 2_592_060).rfc3339
        for json in ["2592001", "\"\(distant)\""] {
            #expect(
                try #require(rejection(#""notBefore":\#(json)"#)).failure.message
                    == "notBefore: is too far ahead; at most 2592000 seconds (schedule.maximumDelay) are allowed")
        }
        var reader = JobDecoder()
        reader.maximumDelay = 10
        #expect(rejection(#""notBefore":11"#, by: reader) != nil && rejection(#""notBefore":10"#, by: reader) == nil)
    }

    @Test func deadlinesInSecondsCountFromTheStart() throws {
        func end(_ fields: String) throws -> Double? { (try read(fields) as Job).end(submitted: 1000) }
        #expect(try end(#""deadline":30"#) == 1030)
        #expect(try end(#""notBefore":60,"deadline":30"#) == 1090)
        #expect(try end(#""notBefore":"1970-01-01T00:00:10Z","deadline":30"#) == 1030)
        #expect(try end(#""notBefore":60,"deadline":"1970-01-01T00:17:00Z""#) == 1020)
        #expect(try end(#""notBefore":60"#) == nil)
    }

    @Test func prefetchHasNoOutputs() throws {
        let job: Job = try read(#""width":4,"variants":[{"name":"a"},{}],"prefetch":true"#)
        #expect(job.isPrefetch && job.variants.isEmpty && job.names.isEmpty && job.keys.isEmpty)
        #expect(try !read(#""prefetch":false"#).isPrefetch)
        var reader = JobDecoder()
        reader.fallback = .initials(try Initials("A"))
        #expect(
            try reader.read(Array(#"{"source":"http://h/a","prefetch":true}"#.utf8), defaultID: "").job.fallback == nil)
        for fields in [
            #""delivery":"inline""#, #""delivery":{"put":"https://h/"}"#, #""cache":{"source":false}"#,
            #""cache":{"onlyIfCached":true}"#,
        ] {
            let failure = try #require(rejection(#""prefetch":true,\#(fields)"#)).failure
            #expect(failure.code == .invalidJob && failure.message.hasPrefix("prefetch: "), "\(failure.message)")
        }
        // The outputs are checked all the same.
        #expect(rejection(#""prefetch":true,"width":-1"#) != nil)
    }

    @Test func readsRefreshRules() throws {
        #expect(try read(#""width":4"#).refresh == nil)
        #expect(try read(#""refresh":"beforeExpiry""#).refresh == .beforeExpiry)
        #expect(try read(#""refresh":10"#).refresh == .every(10))
        for json in ["9.99", "31536001", "\"soon\"", "true"] {
            #expect(
                try #require(rejection(#""refresh":\#(json)"#)).failure.message.hasPrefix("refresh: expected "))
        }
        for fields in [
            #""prefetch":true"#, #""cache":{"memory":false}"#, #""cache":{"onlyIfCached":true}"#, #""maxAge":-1"#,
        ] {
            let failure = try #require(rejection(#""refresh":60,\#(fields)"#)).failure
            #expect(failure.code == .invalidJob && failure.message.hasPrefix("refresh: "), "\(failure.message)")
        }
    }

    @Test func refreshingReportsToNobody() throws {
        let fields =
            #""id":"a","width":4,"refresh":60,"notBefore":5,"deadline":9,"slot":"s","batch":"b","webhook":"w","#
            + #""metadata":1,"delivery":"inline","fallback":"initials:A","tenant":"t","tags":["x"],"maxAge":60"#
        let job: Job = try read(fields)
        let refresh = job.refreshing(as: "r")
        #expect(refresh.id == "r" && refresh.cache.reload && refresh.keys == job.keys && refresh.refresh == .every(60))
        #expect(refresh.tenant == "t" && refresh.tags == ["x"] && refresh.maxAge == 60)
        #expect(refresh.batch == nil && refresh.webhook == nil && refresh.slot == nil && refresh.fallback == nil)
        #expect(refresh.notBefore == nil && refresh.deadline == nil && refresh.delivery == .reference)
        #expect(refresh.echo == Job.PassthroughMetadata())
    }

    static let everyField = [
        "id", "width", "height", "screenScale", "contentMode", "scaleOptions", "cropRect", "gravity", "sizeForDisplay",
        "sizer", "upscale", "interpolationQuality", "background", "processors", "format", "quality", "lossless",
        "position", "trim", "linearLight", "before",
        "palette", "thumbhash", "phash", "faces", "info",
        "effort", "progressive", "stripMetadata", "keepProfile", "page", "frames", "maximumBytes", "allowResize",
        "nearLossless", "chromaSubsampling", "bitDepth", "quantize", "profile", "blurhash", "dominantColor", "variants",
        "partial",
        "maxAge", "cache", "tenant", "headers", "tags", "slot", "generation", "delivery", "prefetch", "refresh",
        "notBefore",
        "deadline", "metadata", "placeholder", "altText", "webhook", "priority", "preset",
    ]

    @Test(arguments: everyField) func treatsNullAsAbsent(field: String) throws {
        let reading = try read(message: #"{"source":"http://h/a","\#(field)":null}"#)
        #expect("\(reading.job)" == "\(try read(message: #"{"source":"http://h/a"}"#).job)")
        #expect(reading.lane == nil && reading.unknownFields.isEmpty)
    }

    @Test func treatsNullAsAbsentWithinObjects() throws {
        let jobs = [
            (#""cache":{"memory":null,"reload":true}"#, #""cache":{"reload":true}"#),
            (#""headers":{"Accept":null,"X-A":"1"}"#, #""headers":{"X-A":"1"}"#),
            (#""gravity":{"x":0,"y":1,"z":null}"#, #""gravity":{"x":0,"y":1}"#),
            (
                #""sizer":{"aspectScaleDownByWidth":null,"aspectScaleDownByHeight":4}"#,
                #""sizer":{"aspectScaleDownByHeight":4}"#
            ),
            (#""processors":[{"blur":null,"flip":{"direction":null}}]"#, #""processors":["flip"]"#),
        ]
        for (job, same) in jobs { #expect("\(try read(job) as Job)" == "\(try read(same) as Job)") }
        let drawn = try read(message: #"{"source":{"initials":"J","base64":null,"video":null}}"#)
        #expect(drawn.job.source == (try read(message: #"{"source":"initials:J"}"#)).job.source)
    }

    @Test func rejectedJobWithNullFieldsHasNoIDOrMetadata() throws {
        let rejected = try #require(rejection(message: #"{"id":null,"metadata":null,"source":7}"#))
        #expect(rejected.id == nil && rejected.echo == Job.PassthroughMetadata())
    }

    @Test func builderDropsNullFields() throws {
        let draft = try JobBuilder(json: Array(#"{"id":null,"source":"initials:J"}"#.utf8), maximumSize: 100)
        #expect(draft["id"] == nil && draft["source"] != nil)
    }

    @Test func limitsWarningsToTenTruncatedFields() throws {
        func warnings(_ members: String) throws -> [String] {
            try read(message: #"{"source":"http://h/a",\#(members)}"#, by: JobDecoder()).warnings
        }
        #expect(try warnings(#""width":4"#).isEmpty)
        #expect(
            try warnings(#""widht":4,"variants":[{"x":1}]"#)
                == [#"unknown field "widht""#, #"unknown field "variants[0].x""#])
        let many = (0..<13).map { #""\#(String(repeating: "é", count: 5000))\#($0)":1"# }.joined(separator: ",")
        #expect(try warnings(many).count == 11)
        #expect(try warnings(many).last == "3 more unknown fields")
        #expect(try warnings(many)[0] == "unknown field \"\(String(repeating: "é", count: 100))\"")
    }

    @Test func limitsTagsTo32() throws {
        let tags = (0..<33).map { "\"\($0)\"" }
        #expect(try read(#""tags":[\#(tags.dropLast().joined(separator: ","))]"#).tags.count == 32)
        #expect(
            try #require(rejection(#""tags":[\#(tags.joined(separator: ","))]"#)).failure.message
                == "tags[32]: is one too many; at most 32 are allowed")
    }

    @Test func comparesTagsByBytes() throws {
        #expect(try read(#""tags":["\u00e9","e\u0301","\u00e9"]"#).tags.map(\.utf8.count) == [2, 3])
    }

    @Test func generationDefaultsToSubmissionTime() throws {
        let slot = try #require(try read(#""slot":"cell","generation":null"#).slot)
        #expect(slot.generation == nil && slot.generation(submitted: 1_795_257_067.25) == 1_795_257_067_250)
        #expect(Job.DisplaySlot(name: "cell", generation: 0).generation(submitted: 5) == 0)
        #expect(slot.generation(submitted: -3) == 0 && slot.generation(submitted: 1e300) == 1 << 53)
    }

    @Test func relativeDeadlineStartsAtSubmission() {
        #expect(Job.Time.after(30).moment(from: 1000) == 1030)
        #expect(Job.Time.at(500).moment(from: 1000) == 500)
    }
}
