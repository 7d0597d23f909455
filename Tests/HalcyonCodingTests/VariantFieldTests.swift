import HalcyonCoding
import HalcyonModel
import Testing

/// Variants of a job: inherited fields and rejected ones.
@Suite struct VariantFieldTests {
    static func variants(_ members: String) throws -> [Variant] { try read(members).variants }

    static func goals(_ members: String) throws -> [Sizing.Goal] { try variants(members).map(\.sizing.goal) }

    @Test func jobWithoutVariantsHasOne() throws {
        #expect(try Self.variants(#""width":4"#).count == 1)
        #expect(try Self.variants(#""width":4,"variants":null"#) == Self.variants(#""width":4"#))
        #expect(try Self.variants(#""width":4,"variants":[{}]"#) == Self.variants(#""width":4"#))
    }

    @Test func variantEqualsAJobWithTheSameFields() throws {
        let own =
            #""width":40,"height":30,"contentMode":"contain","format":"webp","processors":["flip"],"upscale":false"#
        #expect(try Self.variants(#""variants":[{"width":7},{\#(own)}]"#)[1] == read(own).variant)
    }

    @Test func inheritsFieldsOfTheJob() throws {
        // Also if they follow the variants.
        let variants = try Self.variants(
            #""format":"webp","variants":[{},{"format":"png"},{"quality":50}],"quality":80,"gravity":"entropy""#)
        #expect(variants.map(\.output.format) == [.webp, .png, .webp])
        #expect(variants.map(\.output.quality) == [80, 80, 50])
        #expect(variants.allSatisfy { $0.sizing.gravity == .entropy })
    }

    @Test func sizeFieldReplacesTheInheritedSize() throws {
        let display = Sizing.Goal.display(Display(width: 400, height: 300))
        #expect(
            try Self.goals(
                #"""
                "width":400,"height":300,"variants":[{},{"width":200},{"height":200},{"sizer":{"aspectScaleDownByWidth":6}},
                {"sizeForDisplay":false},{"sizeForDisplay":true},{"width":null},{"quality":5}]
                """#)
                == [
                    display, .sizer(.aspectScaleDownByWidth(200)), .sizer(.aspectScaleDownByHeight(200)),
                    .sizer(.aspectScaleDownByWidth(6)), .original, .sizer(.natural), .sizer(.natural), display,
                ])
        #expect(
            try Self.goals(#""sizer":{"aspectScaleDownByWidth":6},"variants":[{},{"width":200},{"sizer":null}]"#)
                == [.sizer(.aspectScaleDownByWidth(6)), .sizer(.aspectScaleDownByWidth(200)), .sizer(.natural)])
        #expect(
            try Self.goals(#""sizeForDisplay":false,"variants":[{},{"width":200}]"#)
                == [.original, .sizer(.aspectScaleDownByWidth(200))])
    }

    @Test func ownSizeInheritsContentMode() throws {
        #expect(
            try Self.goals(#""width":4,"contentMode":"center","variants":[{"width":40,"height":30}]"#)
                == [.display(Display(width: 40, height: 30, contentMode: .center))])
    }

    @Test func processorsReplaceInheritedOnes() throws {
        let variants = try Self.variants(
            #""processors":["flip"],"variants":[{},{"processors":["blackWhite"]},{"processors":[]},{"processors":null}]"#
        )
        #expect(variants.map(\.processors) == [[.flip(.horizontal)], [.blackWhite], [], []])
    }

    @Test func inheritedLengthsUseTheVariantsScale() throws {
        let variants = try Self.variants(
            #""processors":[{"blur":{"radius":3}}],"width":100,"screenScale":2,"variants":[{},{"screenScale":3},{"screenScale":null}]"#
        )
        #expect(variants.map(\.processors) == [[.blur(radius: 6)], [.blur(radius: 9)], [.blur(radius: 3)]])
        #expect(
            variants.map(\.sizing.goal) == [200, 300, 100].map { .sizer(.aspectScaleDownByWidth($0)) })
    }

    /// Every field of a variant with a value other than its default.
    static let nonDefaultFields = [
        #""width":4"#, #""height":4"#, #""screenScale":2"#, #""contentMode":"top""#,
        #""scaleOptions":"fillLeavesExcess""#,
        #""cropRect":{"x":0.5,"y":0,"width":0.5,"height":1}"#, #""gravity":"entropy""#, #""sizeForDisplay":false"#,
        #""sizer":{"aspectScaleDownByWidth":6}"#, #""upscale":true"#, #""interpolationQuality":"low""#,
        #""background":"white""#, #""processors":["flip"]"#, #""format":"png""#, #""quality":7"#, #""lossless":true"#,
        #""effort":3"#, #""progressive":true"#, #""stripMetadata":false"#, #""keepProfile":true"#, #""frames":3"#,
        #""page":2"#,
        #""tolerance":"strict""#, #""position":"top""#, #""trim":true"#, #""linearLight":true"#, #""before":["flip"]"#,
        #""blurhash":true"#, #""dominantColor":true"#, #""palette":true"#,
        #""thumbhash":true"#, #""phash":true"#, #""faces":true"#, #""info":true"#, #""info":{"location":true}"#,
        #""format":"best""#, #""quality":{"target":0.9}"#, #""maximumBytes":9"#, #""allowResize":true"#,
        #""nearLossless":true"#, #""chromaSubsampling":"4:4:4""#, #""quantize":16"#, #""profile":"p3""#,
    ]

    @Test(arguments: nonDefaultFields)
    func nullResetsToTheDefault(field: String) throws {
        let name = field.split(separator: "\"")[0]
        let plain = try read("").variant
        #expect(try Self.variants(#"\#(field),"variants":[{"\#(name)":null}]"#) == [plain])
        #expect(try read(#""\#(name)":null"#).variant == plain)
        let size = #""width":40,"height":30"#
        if !["width", "height", "sizer"].contains(name) {
            #expect(try Self.variants(#""variants":[{\#(size),\#(field)}]"#) != Self.variants(size))
        }
    }

    /// Detections are positions in the source, so nothing may move the pixels before they are used.
    @Test(arguments: [
        (#""faces":true,"before":["flip"]"#, "before[0]: flip changes the positions of detected faces"),
        (#""faces":true,"processors":["normalize","flip"]"#, "processors[1]: flip changes the positions"),
        (#""processors":["pad","blurFaces"]"#, "processors[0]: pad changes the positions"),
        (#""before":[{"rotate":{"degrees":90}},"pixelateFaces"]"#, "before[0]: rotate changes the positions"),
        (
            #""width":9,"height":9,"gravity":"faces","before":[{"crop":{"width":5,"height":5}}]"#,
            "before[0]: crop changes the positions"
        ),
    ])
    func rejectsChangesOfPositionsBeforeTheyAreUsed(fields: String, message: String) {
        #expect { try read(fields) } throws: { "\($0)".contains(message) }
    }

    @Test(arguments: [
        #""processors":["blurFaces","flip",{"rotate":{"degrees":5}}]"#,
        #""width":9,"gravity":"faces","before":["flip"]"#,
        #""width":9,"height":9,"gravity":"objects","processors":["flip"]"#,
        #""faces":true,"before":["normalize",{"resize":{"width":9,"height":9}}],"processors":["blackWhite"]"#,
        #""info":true,"faces":true,"processors":["flip","blurFaces"]"#,
    ])
    func acceptsChangesOfPositionsWithoutEffectOnDetections(fields: String) throws {
        _ = try read(fields)
    }

    @Test func namesTheDetectorInKeysThatNeedIt() throws {
        var reader = JobDecoder()
        reader.detector = "other/2"
        let job = try reader.read(
            Array(#"{"source":"http://h/a","faces":true,"variants":[{},{"faces":false},{"info":true}]}"#.utf8),
            defaultID: "a"
        ).job
        let texts = job.variants.map(\.canonicalText)
        #expect(texts[0].hasSuffix("faces\ndetector=other/2\n") && !texts[1].contains("other"))
        #expect(texts[2].hasSuffix("faces\ndetector=other/2\ninfo\n"))
    }

    @Test func factsDependOnNoFieldsOfAnImage() throws {
        let plain = try read(#""info":true,"phash":true"#).variant
        #expect(plain.info == InfoOptions() && plain.findings == [.phash])
        let variants = try Self.variants(
            #""width":9,"cropRect":{"x":0,"y":0,"width":0.5,"height":1},"processors":["blackWhite"],"format":"png","#
                + #""phash":true,"variants":[{"info":{}},{"info":{"location":true}},{"info":false},{}]"#)
        #expect(variants[0] == plain && variants[1].info == InfoOptions(location: true))
        #expect(variants[2] == variants[3] && variants[3].info == nil && variants[3].output.format == .png)
        #expect(throws: InvalidJobError.self, "they are validated nevertheless") {
            try read(#""info":true,"width":-1"#)
        }
    }

    @Test func factsHaveNoStandardFallback() throws {
        var decoder = JobDecoder()
        decoder.fallback = try Source("initials:A")
        func fallback(_ fields: String) throws -> Source? {
            try decoder.read(Array(#"{"source":"http://h/a",\#(fields)}"#.utf8), defaultID: "a").job.fallback
        }
        #expect(try fallback(#""info":true"#) == nil && fallback(#""width":1"#) == decoder.fallback)
        #expect(try fallback(#""variants":[{},{"info":true}]"#) == decoder.fallback)
        #expect(try fallback(#""info":true,"fallback":"initials:B""#) == Source("initials:B"))
    }

    @Test func keepsEqualVariants() throws {
        let variants = try Self.variants(#""variants":[{"width":4},{"width":4}]"#)
        #expect(variants.count == 2)
        #expect(variants[0] == variants[1])
    }

    @Test(arguments: [
        (#""variants":[]"#, "variants: expected 1 to 16 variants"),
        (#""variants":{}"#, "variants: expected an array, found an object"),
        (#""variants":[{},null]"#, "variants[1]: expected an object, found null"),
        (#""variants":[{"width":4},{"width":-4}]"#, "variants[1].width: expected 0.0 to 65535.0, found -4.0"),
        (#""variants":[{"width":4,"width":4}]"#, "variants[0].width: duplicate name"),
        (
            #""variants":[{},{"width":4,"sizer":"natural"}]"#,
            "variants[1].sizer: cannot be combined with width or height"
        ),
        (#""sizer":"natural","width":4,"variants":[{"width":4}]"#, "sizer: cannot be combined with width or height"),
        (#""variants":[{"width":40000,"screenScale":2}]"#, "variants[0].width: is more than 65535 pixels"),
        (#""width":40000,"variants":[{},{"screenScale":2}]"#, "variants[1].width: is more than 65535 pixels"),
        (
            #""variants":[{"processors":["flip",{"blur":{"radius":-1}}]}]"#,
            "variants[0].processors[1].blur.radius: expected 0.0 to 250.0, found -1.0"
        ),
        (
            #""processors":[{"blur":{"radius":200}}],"variants":[{"screenScale":2}]"#,
            "variants[0].processors[0].blur.radius: is more than 250 pixels"
        ),
        (#""processors":["blurr"],"variants":[{"processors":[]}]"#, "processors[0].blurr: unknown processor"),
        (#""variants":[{},{},{"widht":4}]"#, "variants[2].widht: unknown field"),
    ])
    func reportsPathOfInvalidFields(members: String, message: String) throws {
        let failure = try #require(rejection(members)).failure
        #expect(failure.code == .invalidJob)
        #expect(failure.message.hasPrefix(message), "\(failure.message)")
    }

    @Test(arguments: [
        "id", "source", "variants", "maxAge", "delivery", "prefetch", "refresh", "notBefore", "deadline", "metadata",
        "placeholder",
        "altText", "priority", "tags", "headers", "cache", "slot", "generation", "webhook", "tenant",
    ])
    func rejectsJobFieldsInVariants(name: String) throws {
        for isStrict in [true, false] {
            let rejected = rejection(#""variants":[{"\#(name)":null}]"#, by: JobDecoder(isStrict: isStrict))
            #expect(
                rejected?.failure.message
                    == "variants[0].\(name): belongs to the job, not to one of its variants")
        }
    }

    @Test func limitsVariantsTo16() throws {
        func list(_ count: Int) -> String { "[" + Array(repeating: "{}", count: count).joined(separator: ",") + "]" }
        #expect(try Self.variants(#""variants":\#(list(16))"#).count == 16)
        let failure = try #require(rejection(#""variants":\#(list(17))"#)).failure
        #expect(failure.message == "variants[16]: is one too many; at most 16 are allowed")
    }

    @Test func reportsUnknownFieldsWithTheirPath() throws {
        let message = #"{"source":"http://h/a","variants":[{"widht":4},{"x":1}],"y":1}"#
        #expect(
            try read(message: message, by: JobDecoder()).unknownFields == ["y", "variants[0].widht", "variants[1].x"])
    }
}
