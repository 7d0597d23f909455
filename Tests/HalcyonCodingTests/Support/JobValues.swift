import HalcyonModel

// Values of the fields of random jobs.
extension RandomJobs {
    typealias Field = (name: String, values: [JSONValue])

    static let sources: [JSONValue] = [
        "https://example.org/cat.jpg", "HTTP://Example.ORG:80", "http://example.org:08080/a?b=1&a=2#c",
        "https://User:Pa:ss@example.org:443?q", "http://[2001:DB8::1]:80/x", "http://192.0.2.7:/",
        "https://example.org/%7Ecat/../b", "https://example.org/caf\u{e9}", "https://example.org/cafe\u{301}",
        "http://a_b-c~d.e./@x:1", "https://example.org/\u{301}@other.org", "http://h?/", "http://h#/@x",
        "initials:JD", "initials:\u{e9}\u{df}", "initials:\u{1f469}\u{200d}\u{1f680}", ["initials": "J"],
        ["initials": "ÅÖ", "background": "hsl(210 50% 40%)", "foreground": nil],
        ["initials": "x+y", "foreground": "#1234", "background": "yellow"],
        "file:///srv/cat.jpg", "FILE:/a//./caf\u{e9}%20%25", "file://LocalHost/...",
        "s3://a-bucket/cat.jpg", "S3://a.b//%7Ex/a+b/%2e%2E%2e?versionId=a-1", "s3://123/...",
        "data:,a", "DATA:image/png;BASE64,AAE", "data:image/gif;base64,AAECAw==", "data:a,b;c,%00%FF\u{e9}",
        ["base64": "AAE=", "cacheKey": "caf\u{e9} 1"], ["cacheKey": nil, "base64": "AAE"],
        ["url": "https://Example.org/a?Signature=1", "cacheKey": "caf\u{e9} 1"],
        ["cacheKey": nil, "url": "http://h/a"],
        ["video": ["url": "https://Example.org/a.mp4?t=1", "cacheKey": "a"], "seconds": 2],
        ["video": "https://Example.org/a.mp4#t=1", "seconds": 1.5], ["video": ["base64": "AAAA"], "seconds": nil],
        ["seconds": 0.33333335, "video": "file:///a"],
        ["video": "file:///a", "contactSheet": [:]], ["video": "file:///a", "preview": nil],
        ["video": "s3://bucket/a", "contactSheet": ["columns": 3, "rows": 2.0, "width": 1024], "seconds": nil],
        ["video": "file:///a", "preview": ["frames": 60, "duration": 2.50000049, "width": 512]],
    ]

    /// Valid values.
    static let valid: [Field] = [
        ("id", ["a", .string(String(repeating: "e\u{301}", count: 64)), "\u{0}\n\"\\"]),
        ("screenScale", [1, 2, 1.5, 3.3333335, 4.0]),
        ("contentMode", words(ContentMode.allCases) + ["fill", "contain", "cover"]),
        ("scaleOptions", words(ScaleOptions.allCases)),
        ("sizeForDisplay", [true, true, false]),
        ("sizer", ["natural", nil, ["aspectScaleDownByWidth": 600], ["aspectScaleDownByHeight": 33.3333335]]),
        ("interpolationQuality", words(InterpolationQuality.allCases)),
        ("position", words(ContentMode.unscaled) + [nil]), ("linearLight", [true, false, nil]),
        (
            "trim",
            [
                true, false, nil, [:], ["tolerance": 0], ["tolerance": 254, "fuzz": 0.5, "background": nil],
                ["background": "white", "fuzz": 0.3333335], ["fuzz": 1e-9],
            ]
        ),
        ("format", words(ImageFormat.writable) + ["auto", nil]),
        ("quality", [1, 80, 100, 80.0, 7e1, ["target": 0.5], ["target": 0.98123456], nil]),
        ("lossless", [true, false]),
        ("effort", [0, 9, 4.0]),
        ("progressive", [true, false]),
        ("maxAge", [0, -1, 60, 0.5, 1e300]),
        (
            "delivery",
            [
                "reference", "inline", ["put": "https://u:p@example.org:8443/up?sig=1"],
                ["put": "https://example.org/{variant}.{format}?{index}{key}#a"],
                ["put": "https://u:p@h?{width}x{height}"], ["put": ["0": "https://example.org/a?sig=1"]],
            ]
        ),
        ("priority", ["high", "normal", "low"]),
        ("prefetch", [false, nil]), ("refresh", [nil]),
        ("notBefore", [0, 30, 0.25, 2_592_000, "2001-11-21T12:00:00Z"]),
        ("deadline", [0, 30, 0.25, 315_360_000, "2026-11-21T12:00:00Z", "2026-11-21 12:00:60.25+05:30"]),
        ("metadata", [nil, ["n": [1, 2.5, true, nil, "é"]], "text"]),
        ("placeholder", [nil, false]),
        ("altText", ["a cat", 0]),
        (
            "gravity",
            [
                "center", nil, "attention", "entropy", ["x": 0.5, "y": 0.5], ["x": 0.3333335, "y": 1],
                ["y": 0, "x": 0.49999999], "faces", "objects", ["detect": "faces"],
                ["detect": "objects", "fallback": "entropy", "confidence": 0.3333335],
                ["detect": "faces", "fallback": ["x": 0.25, "y": 1], "confidence": nil],
            ]
        ),
        ("background", colors + [nil]),
        ("stripMetadata", [true, false, nil]),
        ("keepProfile", [true, false, nil]), ("tolerance", ["strict", "truncated", nil]),
        ("maximumBytes", [1, 50_000, 1_073_741_824, nil]), ("allowResize", [true, false, nil]),
        ("nearLossless", [true, false, nil]), ("chromaSubsampling", ["auto", "4:4:4", "4:2:0", nil]),
        ("bitDepth", [8, 8.0, nil]),
        ("quantize", [true, false, 2, 4, 16, 256, [:], ["colors": 16, "dither": 0], ["dither": 0.25], nil]),
        ("upscale", [true, false, nil]), ("frames", [1, 65_535, 12.0, nil]),
        ("page", [1, 2, 65_535, 3.0, nil]),
        ("blurhash", [true, false, nil]), ("dominantColor", [true, false, nil]),
        ("palette", [true, false, nil]), ("thumbhash", [true, false, nil]), ("phash", [true, false, nil]),
        ("faces", [true, false, nil]),
        ("info", [true, false, nil, [:], ["location": true], ["location": false], ["location": nil]]),
        (
            "headers",
            [
                [:], nil, ["Accept": "image/webp", "x-b": "", "X-A": "a=b: c\"\u{e9}"], ["TraceParent": "00-1-2-01"],
                ["a!#$%&'*+-.^_`|~9": "1", "Referer": "http://h/"],
            ]
        ),
        ("tags", [[], nil, ["a"], ["a", "b c", "a", "é/}"], .array(Array(repeating: "x", count: 32))]),
        (
            "cache",
            [
                nil, [:], ["source": false], ["onlyIfCached": true, "memory": false, "reload": false],
                ["reload": true, "source": true],
            ]
        ),
        ("partial", [nil, true, false]), ("slot", [nil, "cell-12", "\u{0}{}"]),
        ("generation", [nil, 0, 7, 9_007_199_254_740_992]),
        (
            "webhook",
            [
                nil, "shop", "a.B-7_", .string(String(repeating: "w", count: 64)), "https://hooks.example.org/a?b#c",
                "HTTP://h:080", "http://[2001:DB8::1]:8080/x/@y",
            ]
        ),
        ("alternatives", [nil, [], ["https://example.org/b"], .array(Array(sources.prefix(8)))]),
        ("fallback", [nil, false, "initials:JD", "https://example.org/none.png", ["base64": "AAE="]]),
        (
            "batch",
            [
                nil, "a", "A-b_c.9:7", .string(String(repeating: "b", count: 128)), ["id": "a"],
                ["id": "a", "index": 0], ["index": 9_999_999, "id": "a:b"], ["id": "a", "index": nil],
                ["id": "a", "index": 7.0],
            ]
        ),
        ("tenant", [nil, "a", "A-b_c.9", .string(String(repeating: "t", count: 64))]),
        (
            "preset",
            [
                nil, nil, "card", "A-b_c.9", "only1", .string(String(repeating: "p", count: 64)), ["name": "card"],
                ["version": 3, "name": "0"], ["name": "card", "version": nil, "extra": nil],
            ]
        ),
    ]

    /// Values at the limits of a field and just beyond them.
    static let edgeCases: [Field] = [
        (
            "preset",
            [
                "", "only", "-a", ".a", "_a", "a b", "a\n", "é", .string(String(repeating: "p", count: 65)), [:],
                ["version": 1], ["name": "only"], ["name": nil], ["name": "a", "version": 0], ["name": 7],
                ["name": "a", "version": 1.5], ["name": "a", "version": 9_007_199_254_740_992], ["name": "a", "x": 1],
                ["name": "a", "version": 9_007_199_254_740_993], ["name": "a", "version": "1"],
            ]
        ),
        ("id", ["", .string(String(repeating: "\u{1f600}", count: 128)), .string(String(repeating: "a", count: 129))]),
        (
            "source",
            [
                "", "cat.jpg", "http:", "http:/x", "http://", "http:///x", "http://:80/", "http://h:65535/",
                "http://h:65536/", "http://h:000065535", "http://h:100000", "http://h:x/", "http://h:1x",
                "http://exa mple.org/", "http://h/a\nb", "http://h/\u{7f}", "http://h\n", "http://[::1]x/",
                "1http://h/",
                "://h/", "http://h\\x/", "http://a@b@h/", "http://h:1:2/", "http://[]/", "http://[::g]/", "http://[::1",
                "http://%6c/", "http://\u{ff45}xample.org/", "http://h/\u{ff45}\\", "httpss://h/", "ftp://h/x",
                "http://h:-1/", "file:", "file:a", "file:///", "file://", "file://localhost", "file://h/a",
                "file:///a/",
                "file:///a/..", "file:///../a", "file:///a/%2E./b", "file:///a/.%2e", "file:///..a/b..", "file:///a/.",
                "file:///a%2fb", "file:///a%2Fb", "file:///%00", "file:///a%1f", "file:///a%7F", "file:///a%20",
                "file:///a?b", "file:///a#b", "file:///a\\b", "file:///a b", "file:///%", "file:///%4", "file:///%g0",
                "file:////h/a", "file:/", "file:///%2e", "file:///%C3%A9", "file:///%C3", "file:///...", "file:a/b",
                .string("file:///" + String(repeating: "a", count: 8184)),
                .string("file:///" + String(repeating: "a", count: 8185)),
                "s3:", "s3:a", "s3://", "s3://bucket", "s3://bucket/", "s3://ab/c", "s3://Bucket/c", "s3://bucket./c",
                "s3://.bucket/c", "s3://a..b/c", "s3://a.b.c.d/c", "s3://1.2.3.4/c", "s3://1.2.3.4.5/c", "s3://-bc/c",
                "s3://bc-/c", "s3://bu_cket/c", "s3://bucket/a?b", "s3://bucket/a?versionId=",
                "s3://bucket/?versionId=a",
                "s3://bucket/a?versionId=a&b=c", "s3://bucket/a?versionId=a%20", "s3://bucket/a#b", "s3://bucket/a\\b",
                "s3://bucket/a//b", "s3://bucket//", "s3://bucket/./a", "s3://bucket/a/..", "s3://bucket/a%2f..",
                "s3://bucket/%2e/a", "s3://bucket/..?versionId=a", "s3://bucket/a..b", "s3://bucket/%",
                "s3://bucket/%0a",
                "s3://bucket/%7f", "s3://bucket/a/", "s3://user@bucket/a", "s3://bucket:80/a",
                .string("s3://" + String(repeating: "a", count: 63) + "/k"),
                .string("s3://" + String(repeating: "a", count: 64) + "/k"),
                "data:", "data:,", "data:a", "data:a,%", "data:a%,b", "data:,%4", "data:,a b", "data:,a\n",
                "data:;base64,",
                "data:;base64,A", "data:;base64,AA=", "data:;base64,AA==", "data:;base64,A===", "data:;base64,AA%3D%3d",
                "data:;base64,AB-_", "data:;base64,AA==AA==", "data:;base64;a,%", "data:base64,A",
                ["base64": ""], ["base64": "="], ["base64": "A A"], ["base64": "AAAA", "cacheKey": ""], ["base64": 7],
                ["base64": "AAAA", "cacheKey": "a\n"], ["base64": "AAAA", "cacheKey": 1],
                ["base64": "AAAA", "key": "a"], ["url": "https://h/a", "key": "a"], ["url": "file:///a"],
                ["url": ["url": "https://h/a"]], ["url": "https://h/a", "cacheKey": ""], ["cacheKey": "a"],
                ["base64": "AAAA", "cacheKey": .string(String(repeating: "\u{1f600}", count: 128))],
                ["base64": "AAAA", "cacheKey": .string(String(repeating: "a", count: 129))],
                ["video": "initials:JD"], ["video": ["initials": "JD"]], ["video": ["video": "file:///a"]],
                ["seconds": 1],
                ["video": "file:///a", "seconds": -1], ["video": "file:///a", "seconds": 86_400],
                ["video": "file:///a", "seconds": 86_400.1], ["video": "file:///a", "seconds": "1"], ["video": 7],
                ["video": "file:///a", "fps": 1],
                ["video": "file:///a", "contactSheet": ["columns": 0]], ["video": "file:///a", "contactSheet": true],
                ["video": "file:///a", "contactSheet": ["rows": 9]], ["video": "file:///a", "preview": ["fps": 1]],
                ["video": "file:///a", "preview": ["frames": 1]], ["video": "file:///a", "preview": ["duration": 0]],
                ["video": "file:///a", "preview": ["width": 1025]], ["video": "file:///a", "preview": ["width": 15]],
                ["gallery": ["id": 1]], "gallery:1", [:],
                .string("http://h/" + String(repeating: "a", count: WebURL.longest - 9)),
                .string("http://h/" + String(repeating: "a", count: WebURL.longest - 8)),
            ]
        ),
        ("width", lengths), ("height", lengths),
        ("screenScale", [0, 0.999, 1.0, 4.0000001, -2, "2"]),
        ("contentMode", ["", "aspectFill", "ScaleToFill", "scaleToFill ", "redraw", "cover"]),
        ("scaleOptions", ["", "default", "both", "fitCropsExcess"]),
        (
            "cropRect",
            [
                [:], ["x": 0, "y": 0, "width": 1], crop(1, 0, 0.5, 1), crop(0, 1, 0.5, 1), crop(1, 1, 0, 1),
                crop(1, 1, 1, 0.0), crop(0.9999999, 0, 1, 1), crop(-0.1, 0, 1, 1), crop(0, 0, -1, 1),
                crop(0, 0, 1000, 1),
                crop(0, 0, 1000.1, 1), crop("0", 0, 1, 1), crop(nil, 0, 1, 1), crop(0, 0, true, 1),
                crop(1.0, 0, -0.0, 1), crop(0.1, 1e-9, 0.30000000000000004, 1e-300), crop(1e-5, 0, 1e2, 0.1e1),
                ["x": 10, "y": 20.5, "width": 1e7, "height": 3e2, "unit": "pixels"],
                ["x": 0, "y": 0, "width": 1, "height": 1, "unit": "pixels"],
                ["x": 0, "y": 7, "width": 1, "height": 0, "unit": "pixels"],
                ["x": 0, "y": 0, "width": 1e8, "height": 1, "unit": "pixels"],
                ["x": 0.5, "y": 0, "width": 0.5, "height": 1, "unit": "fractions"],
                ["x": 0, "y": 0, "width": 1, "height": 1, "unit": "points"],
                ["x": 5, "y": 0, "width": 1, "height": 1, "unit": "fractions"],
                ["x": 5, "y": 0, "width": 1, "height": 1, "unit": nil],
                ["x": 0, "y": 0, "width": 1, "height": 1, "unit": nil],
                ["x": 0, "y": 0, "width": 1, "height": 1, "depth": 1], [0, 0, 1, 1],
            ]
        ),
        ("sizeForDisplay", [0, "false", true]),
        (
            "sizer",
            [
                "Natural", [:], ["natural": true], ["aspectScaleDownByWidth": 0], ["aspectScaleDownByWidth": 65_536],
                ["aspectScaleDownByHeight": "9"], ["aspectScaleDownByWidth": 1, "aspectScaleDownByHeight": 1],
                ["aspectScaleDownByDepth": 1], "natural",
            ]
        ),
        ("interpolationQuality", ["best", "High", "none"]),
        ("position", ["scaleToFill", "Top", 1, "center"]), ("linearLight", [1, "true"]),
        (
            "trim",
            [
                "true", 1, ["tolerance": 255], ["tolerance": -1], ["tolerance": 1.5], ["fuzz": 0.51],
                ["background": "rde"], ["fuzz": true], ["a": 1], [],
            ]
        ),
        ("before", [["flip", "flop"], "flip", ["processors"]]),
        ("format", ["jpg", "gif", "JPEG", "heic", "svg", "webp", ""]),
        (
            "quality",
            [
                0, 1, 100, 101, 80.5, -1, 1e300, "80", [:], ["target": 1], ["target": 0.4], ["target": "0.9"],
                ["best": 0.9],
            ]
        ),
        ("lossless", [0, 1, "true"]),
        ("effort", [-1, 0, 9, 10, 4.5]),
        ("maxAge", [-1e308, "60", nil]),
        (
            "delivery",
            [
                "put", "Inline", nil, [:], ["put": nil], ["put": ["https://example.org/"]],
                ["put": "ftp://example.org/"],
                ["put": "https://exa mple.org/"], ["put": "https://example.org/", "inline": true],
                ["put": "https://h/{varient}"], ["put": "https://h/{Variant}"], ["put": "https://h/{}"],
                ["put": "https://h/{variant"], ["put": "https://h/variant}"], ["put": "https://h/{{variant}}"],
                ["put": "https://h/{variant}}"], ["put": "https://{variant}/"], ["put": "https://h{variant}/"],
                ["put": "https://{variant}@h/"], ["put": "https://h:{index}/"], ["put": "{variant}://h/"],
                ["put": "{variant}"], ["put": "https://h{variant}"], ["put": "https://h/#{variant}"],
                ["put": "https://h/{variant}#{index}"], ["put": "https://h#a{"], ["put": "https://h/%7Ba%7D"],
                ["put": "https://h/{variant}\n"], ["put": "https://h/{variant} "], ["put": "ftp://h/{variant}"],
                ["put": "//h/{variant}"], ["put": "https://h?{variant}"], ["put": "https:///{variant}"],
                ["put": .string("https://h/{format}" + String(repeating: "a", count: WebURL.longest - 18))],
                ["put": .string("https://h/{format}" + String(repeating: "a", count: WebURL.longest - 17))],
                ["put": [:]], ["put": ["0": nil]], ["put": ["0": "https://h/", "1": nil]], ["put": ["0": 7]],
                ["put": ["0": "https://h/{index}"]], ["put": ["0": "ftp://h/"]], ["put": ["0": ["https://h/"]]],
                ["put": ["1": "https://h/"]], ["put": ["0": "https://h/", "a": "https://h/b"]],
                ["put": ["0": "https://h/", "a b": "https://h/b"]], ["put": ["0": "https://h/", "a b": nil]],
                ["put": ["0": .string("https://h/" + String(repeating: "a", count: WebURL.longest - 9))]],
            ]
        ),
        ("priority", ["urgent", 1, "HIGH", nil]),
        ("prefetch", ["true", 1, []]), ("refresh", [true, 9.9, 31_536_001, "", "beforeexpiry", [60]]),
        ("notBefore", [-1, 315_360_001, "", "30", "2026-11-21", true, [30]]),
        (
            "deadline",
            [
                -1, 315_360_001, 1e300, "", "30", "tomorrow", "2026-11-21", "2026-11-21T12:00:00",
                "2026-13-21T12:00:00Z",
                "2026-11-32T12:00:00Z", "2026-11-21T24:00:00Z", "2026-11-21T12:60:00Z", "2026-11-21T12:00:61Z",
                "2026-11-21T12:00:00.Z", "2026-11-21T12:00:00+0100", "2026-11-21T12:00:00+24:00",
                "2026-11-21t12:00:00z",
                "26-11-21T12:00:00Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:60-23:59",
            ]
        ),
        (
            "gravity",
            [
                "Center", "north", [:], ["x": 0.5], ["x": 0.5, "y": nil], ["x": -0.1, "y": 0], ["x": 0, "y": 1.1],
                ["x": 0, "y": "0"], ["x": 0, "y": 0, "z": 0], [0.5, 0.5],
                ["detect": "cats"], ["detect": "faces", "x": 0.5], ["detect": "faces", "fallback": "faces"],
                ["detect": "faces", "confidence": 1.1], ["detect": 1],
                ["detect": "faces", "fallback": ["detect": "faces"]],
            ]
        ),
        ("background", invalidColors),
        ("stripMetadata", [1]),
        ("keepProfile", [0]), ("tolerance", ["Truncated", true, ""]),
        ("maximumBytes", [0, -1, 1.5, 1_073_741_825, 1e300, "50000", true, [50000]]), ("allowResize", [1, "true"]),
        ("nearLossless", [60, "true"]), ("chromaSubsampling", ["4:2:2", "420", true, 420, ""]),
        ("bitDepth", [0, -16, 1, 9, 10, 24, 32, 12.5, 1e300, "16", true, [16]]),
        (
            "quantize",
            [
                0, 1, 3, 8, 257, -2, 2.5, 1e300, "16", [16], ["colors": 8], ["colors": "16"], ["dither": -0.1],
                ["dither": 1.1], ["size": 16],
            ]
        ),
        ("profile", ["P3", "sRGB", "cmyk", true, ["name": "p3"], ""]),
        ("processors", RandomProcessors.faults.map { [$0] } + [[:], "blur", [["flip": [:]], "blackWhite", nil]]),
        (
            "headers",
            [
                [], "a: b", ["": "a"], ["a b": "c"], ["a:": "c"], ["\u{e9}": "a"], ["a\n": "c"], ["a": nil], ["a": 1],
                ["a": ["b"]], ["a": "\n"], ["a": "b\u{0}"], ["a": "b\tc"], ["a": "\u{7f}"], ["a": " b"], ["a": "b "],
                ["a": " "], ["a": "b c"], ["a": "\u{80}\u{1f600}"], ["Host": "h"], ["hOST": "h"], ["Hosts": "h"],
                ["content-length": "1"], ["Transfer-Encoding": "chunked"], ["TE": "trailers"], ["Tea": "green"],
                ["If-None-Match": "a"], ["if-": "a"], ["Iffy": "a"], ["range": "bytes=0-"], ["Accept-Ranges": "a"],
                ["Accept-Encoding": "br"], ["Proxy-Authorization": "a"], ["Proxy": "a"], ["Connection": "close"],
                ["Keep-Alive": "a"], ["Upgrade": "h2c"], ["HTTP2-Settings": "a"], ["Expect": "100-continue"],
                ["Trailer": "a"], ["Content-Encoding": "gzip"], ["Content-Type": "a/b"], ["a": "b", "A": "c"],
                .object((0..<32).map { .init(name: "a\($0)", value: "b") }),
                .object((0..<33).map { .init(name: "a\($0)", value: "b") }),
                ["a": .string(String(repeating: "b", count: 8191))],
                ["a": .string(String(repeating: "b", count: 8192))],
            ]
        ),
        (
            "tags",
            [
                [[]], "", [""], ["a", nil], ["a\n"], ["\u{7f}"], ["\u{80}"], [7], [:],
                .array([.string(String(repeating: "t", count: 128))]),
                .array([.string(String(repeating: "t", count: 129))]),
                .array(Array(repeating: "x", count: 33)),
            ]
        ),
        (
            "cache",
            [
                ["memory": nil], ["memory": 1], ["reload": true, "onlyIfCached": true], ["disk": true], true, [],
                ["onlyIfCached": "yes"], ["reload": true, "onlyIfCached": false],
            ]
        ),
        ("upscale", ["true", 1]), ("frames", [0, 1.5, 65_536, "1"]),
        ("page", [0, -1, 1.5, 65_536, "1", true]),
        (
            "slot",
            ["", 7, .string(String(repeating: "s", count: 256)), .string(String(repeating: "s", count: 257)), ["a"]]
        ),
        ("blurhash", ["4x3", 1]), ("dominantColor", [0, "#fff"]), ("palette", [8, [:]]), ("thumbhash", ["a", []]),
        ("phash", [64, "dct"]), ("faces", [2, "all", [:]]),
        ("info", [1, "yes", [], ["location": 1], ["exif": true], ["location": [:]], ["location": true, "a": 1]]),
        (
            "variants",
            [
                [], [:], [nil], [["width": 1], 2], [["source": "http://h/b"]], [["variants": [[:]]]], [["id": "a"]],
                [["maxAge": 1]], [["tags": []]], [["tenant": nil]], [["widht": 1]], [["width": 1, "sizer": "natural"]],
                [["width": nil, "sizer": "natural"]], [["sizer": nil, "width": 4]], [["format": "jpg"]],
                [["name": "small"]], [["name": nil]], [["name": "a"], ["name": "a"]], [["name": "1"], [:]],
                [["name": "0"], [:]], [["name": ""]], [["name": ".a"]], [["name": "a b"]], [["name": "A-b_c.9"]],
                [["name": "-"]], [["name": 7]], [["name": "a\n"]], [["name": "é"]],
                [["name": .string(String(repeating: "n", count: 64))]],
                [["name": .string(String(repeating: "n", count: 65))]],
                [["processors": [["blur": ["radius": 0]]]]], .array(Array(repeating: [:], count: 16)),
                .array(Array(repeating: [:], count: 17)),
            ]
        ),
        ("partial", [0, "true"]), ("generation", [0, -1, 0.5, 3.0, "1", 9_007_199_254_740_993]),
        (
            "webhook",
            [
                "", "a b", "a/b", "é", "shop\n", .string(String(repeating: "w", count: 65)), 7, ["shop"],
                ["url": "http://h/"],
                "ftp://h/", "http:", "http:h", "https://", "https:///a", "https://u@h/", "https://u:p@h/a",
                "http://@h/",
                "http://h:65536/", "http://h /", "http://h\\a", "//h/a", "mailto:a@b",
                .string("http://h/" + String(repeating: "a", count: WebURL.longest - 8)),
            ]
        ),
        (
            "alternatives",
            ["initials:JD", [nil], [false], ["cat.jpg"], [7], [:], .array(Array(repeating: "http://h", count: 9))]
        ),
        ("fallback", [true, "", 0, [], ["https://example.org/b"], "cat.jpg", ["initials": ""]]),
        (
            "batch",
            [
                "", "a b", "a/b", "a\n", "\u{e9}", .string(String(repeating: "b", count: 129)), [:], ["index": 1],
                ["id": nil], ["id": ""], ["id": 7], ["id": "a\n"], ["id": "a", "index": -1], ["id": "a", "index": 0.5],
                ["id": "a", "index": 10_000_000], ["id": "a", "index": "1"], ["id": "a", "total": 1],
                ["id": "a", "Index": 1],
            ]
        ),
        (
            "tenant",
            ["", "a b", "a/b", "é", "a\n", "{a}", ":", .string(String(repeating: "t", count: 65)), 7, ["a"]]
        ),
    ]

    static let colors: [JSONValue] = [
        "transparent", "white", "RebeccaPurple", "#fff", "#F80", "#ff880080", "#1230", "rgb(1, 2, 300)", "rgb(1 2 3)",
        "RGBA(10%,20.5%,30%,.5)", "hsl(210 50% 40% / 25%)", "hsla(-30deg, 100%, 50%, 1)", "hsl(725,12.5%,99%)",
        "rgb(0 0 0 / 0)", "rgb( 1 , 2 , 3 )", "rgb(1e1 2 3)", "rgb(0.5 1.5 2.5/0.5)",
    ]

    static let invalidColors: [JSONValue] = [
        "", "whit", "#", "#ff", "#fffff", "#ggg", "#fff ", " white", "rgb()", "rgb(1,2)", "rgb(1 2 3 4)",
        "rgb(1,2,3,4,5)",
        "rgb(1,,2,3)", "rgb(1/2/3)", "rgb(1 2 3 /)", "rgb(0x10 2 3)", "rgb(nan,1,2)", "hsl(1,2,3)", "hsl(1%,2%,3%)",
        "cmyk(1,2,3,4)", "rgb (1,2,3)", "rgb(1,2,3", "url(x)", "blac\u{212a}", "#\u{ff11}23", "rgb(1000000,0,0)", 0,
        ["#fff"],
    ]

    /// Values of every type.
    static let anything: [JSONValue] = [
        nil, true, false, 0, 1, -1, 0.5, -0.0, 1e300, 1e-300, "", "1", "true", "center", "\u{0}", [], [1], [:],
        ["a": 1],
    ]

    private static let lengths: [JSONValue] = [
        0, -0.0, -4, 1e-300, 1e-7, 65_535, 65_535.0001, 65_536, 1e9, "400", true, nil,
    ]

    private static func crop(_ x: JSONValue, _ y: JSONValue, _ width: JSONValue, _ height: JSONValue) -> JSONValue {
        ["x": x, "y": y, "width": width, "height": height]
    }

    private static func words(_ choices: [some RawRepresentable<String>]) -> [JSONValue] {
        choices.map { .string($0.rawValue) }
    }
}
