import HalcyonCoding
import HalcyonModel
import JSON
import Testing

/// The expansion of jobs with a preset, as docs/presets.md describes it.
@Suite struct PresetTests {
    /// Returns a decoder with the presets.
    private static func reader(_ presets: (name: String, json: String)...) throws -> JobDecoder {
        var reader = JobDecoder(isStrict: true)
        let all = try presets.map { name, json in try Preset(name, json: Array(json.utf8)) }
        for preset in all { try reader.check(preset) }
        reader.findPreset = { name in all.first { $0.name == name } }
        return reader
    }

    private static let card = """
        {"job":{"width":320,"height":180,"format":"webp","maxAge":60,"fallback":"initials:F","cache":{"store":"required"},\
        "processors":["blackWhite"]},"overridable":["width","quality","cache"],"version":3}
        """

    private static func cards() throws -> JobDecoder { try reader(("card", card)) }

    @Test(
        arguments: [
            (
                #"{"width":9,"preset":{"name":"card","version":3},"source":"initials:A","id":"a","batch":"b","metadata":{}}"#,
                #"{"source":"initials:A","width":9}"#
            ),
            (
                #"{"source":{"initials":"A"},"tenant":"t","tags":["x"],"partial":true,"headers":{"Accept":"a"},"preset":"card"}"#,
                #"{"headers":{"Accept":"a"},"partial":true,"source":{"initials":"A"},"tags":["x"],"tenant":"t"}"#
            ),
            (
                #"{"source":"initials:A","cache":{"reload":true,"store":false},"delivery":"inline","deadline":5,"webhook":"w"}"#,
                #"{"cache":{"store":false},"source":"initials:A"}"#
            ),
            (
                #"{"source":"initials:A","slot":"s","generation":1,"priority":"high","maxAge":null}"#,
                #"{"source":"initials:A"}"#
            ),
            (#"{"source":"initials:A","headers":{"authorization":"Basic x"}}"#, nil),
            (#"{"source":"initials:A","headers":{"COOKIE":"x"}}"#, nil), ("[]", nil), ("", nil),
        ] as [(String, String?)])
    func jobsAreRepeatedWithTheFieldsOfTheirResults(message: String, repetition: String?) {
        #expect(
            JobBuilder(repeating: Array(message.utf8)).map { String(decoding: $0.json, as: UTF8.self) } == repetition)
    }

    @Test func jobsBelongToTheTenantOfTheirPreset() throws {
        let reader = try Self.reader(("card", #"{"job":{"width":8,"tenant":"a"}}"#), ("free", #"{"job":{"width":8}}"#))
        func isJob(_ json: String, of tenant: String) throws -> Bool {
            reader.isJob(try JobBuilder(json: Array(json.utf8), maximumSize: 1000), of: tenant)
        }
        #expect(try isJob(#"{"source":"initials:A","preset":"card"}"#, of: "a"))
        #expect(try !isJob(#"{"source":"initials:A","preset":"card"}"#, of: "b"))
        #expect(try isJob(#"{"source":"initials:A","preset":"free","tenant":"b"}"#, of: "b"))
        #expect(try !isJob(#"{"source":"initials:A","preset":"free"}"#, of: "b"))
        #expect(try isJob(#"{"source":7,"preset":"free","tenant":"b"}"#, of: "b"))
        for name in ["preset", #"\u0070reset"#] {
            let message = #"{"source":"initials:A","\#(name)":"card"}"#
            #expect(reader.tenant(of: Array(message.utf8)) == "a")
        }
    }

    @Test func expandsToTheFieldsOfItsTemplate() throws {
        let job = try read(#""preset":"card","id":"a","metadata":1"#, by: Self.cards()) as Job
        let same =
            try read(
                """
                "id":"a","width":320,"height":180,"format":"webp","maxAge":60,"fallback":"initials:F",\
                "cache":{"store":"required"},"processors":["blackWhite"],"metadata":1
                """) as Job
        #expect(job.keys == same.keys && job.variant == same.variant && job.fallback == same.fallback)
        #expect(job.maxAge == 60 && job.cache.store == .required && job.echo == same.echo)
        #expect(job.preset == PresetReference("card", version: 3) && same.preset == nil)
    }

    @Test func keysDoNotDependOnTheNameOrVersion() throws {
        let reader = try Self.reader(("a", #"{"job":{"width":8}}"#), ("b", #"{"job":{"width":8},"version":7}"#))
        let keys = try [#""preset":"a""#, #""preset":"b""#, #""width":8"#].map {
            try (read($0, by: reader) as Job).keys
        }
        #expect(keys[0] == keys[1] && keys[1] == keys[2])
    }

    @Test func fieldsOfTheJobReplaceOverridableOnes() throws {
        let job =
            try read(#""width":64,"quality":70,"preset":"card","cache":{"source":false}"#, by: Self.cards()) as Job
        let same =
            try read(
                #""width":64,"height":180,"format":"webp","quality":70,"processors":["blackWhite"]"#) as Job
        #expect(job.keys == same.keys)
        // A field is replaced as a whole.
        #expect(job.cache.store == .allowed && !job.cache.source)
    }

    @Test func nullDoesNotReplaceAField() throws {
        let job = try read(#""width":null,"format":null,"preset":"card""#, by: Self.cards()) as Job
        #expect(job.keys == (try read(#""preset":"card""#, by: Self.cards()) as Job).keys)
    }

    /// These fields do not belong to the picture.
    @Test func fieldsOutsideOfThePictureNeedNoPermission() throws {
        let job =
            try read(
                """
                "preset":"card","alternatives":["initials:A"],"slot":"s","generation":2,"tenant":"t","tags":["a"],\
                "deadline":5,"webhook":"w","delivery":"inline","headers":{"Accept":"image/png"},"altText":"b","partial":true,\
                "placeholder":"c","priority":"low"
                """, by: Self.cards()) as Job
        #expect(job.tenant == "t" && job.tags == ["a"] && job.slot?.generation == 2 && job.delivery == .inline)
        #expect(job.alternatives.count == 1 && job.deadline == .after(5) && job.partial && job.webhook != nil)
    }

    @Test(arguments: [
        (#""height":90"#, "height: cannot be set in a job with the preset card; it allows width, quality, cache"),
        (#""screenScale":2"#, "screenScale: cannot be set in a job with the preset card"),
        (#""variants":[{"width":8}]"#, "variants: cannot be set in a job with the preset card"),
        (#""blurhash":true"#, "blurhash: cannot be set"), (#""maxAge":3"#, "maxAge: cannot be set"),
        (#""fallback":false"#, "fallback: cannot be set"), (#""width":-1"#, "width: expected"),
        (#""sizer":"natural""#, "sizer: cannot be set"), (#""widht":8"#, "widht: unknown field"),
    ])
    func rejectsFieldsThatThePresetDoesNotAllow(members: String, message: String) throws {
        let error = try #require(rejection(#""preset":"card",\#(members)"#, by: Self.cards()))
        #expect(error.failure.code == .invalidJob && error.missingPreset == nil)
        #expect(error.failure.message.hasPrefix(message), "\(error.failure.message)")
    }

    @Test func presetsWithoutOverridableFieldsSaySo() throws {
        let reader = try Self.reader(("fixed", #"{"job":{}}"#))
        #expect(
            rejection(#""preset":"fixed","width":8"#, by: reader)?.failure.message
                == "width: cannot be set in a job with the preset fixed; it has no overridable fields")
    }

    @Test func variantsOfAPresetInheritOverriddenFields() throws {
        let reader = try Self.reader(
            (
                "set",
                #"{"job":{"variants":[{"width":8,"name":"s"},{"width":16,"quality":9}]},"overridable":["quality"]}"#
            ))
        let job = try read(#""preset":"set","quality":50"#, by: reader) as Job
        #expect(job.variants.map(\.output.quality) == [50, 9] && job.labels == ["s", "1"])
        let error = rejection(#""variants":[{"preset":"set"}]"#, by: reader)
        #expect(error?.failure.message == "variants[0].preset: belongs to the job, not to one of its variants")
    }

    @Test func requiresAVersionOrANewerOne() throws {
        let reader = try Self.cards()
        for version in [1, 3] {
            let job = try read(#""preset":{"name":"card","version":\#(version)}"#, by: reader) as Job
            #expect(job.preset?.version == 3)
        }
        let error = try #require(rejection(#""preset":{"name":"card","version":4}"#, by: reader))
        #expect(error.missingPreset?.known == 3)
        #expect(
            error.failure.message
                == "preset: the preset card has the version 3, and the job requires 4 or newer")
    }

    @Test func reportsUnknownPresetsWithTheIDOfTheJob() throws {
        let error = try #require(rejection(#""preset":"none","id":"a""#, by: Self.cards()))
        #expect(error.missingPreset?.reference == PresetReference("none") && error.missingPreset?.known == nil)
        #expect(error.id == "a" && error.failure.description == "invalid_job: preset: there is no preset none")
    }

    @Test(arguments: [
        (#""""#, "preset: expected the name of a preset"), ("7", "preset: expected a string"),
        (#""only""#, "preset: expected the name"), (#"{"version":1}"#, "preset.name: is missing"),
        (#"{"name":"card","version":0}"#, "preset.version: expected 1 to"),
        (#"{"name":"card","x":0}"#, "preset.x: unknown member"),
    ])
    func rejectsInvalidReferences(json: String, message: String) throws {
        let error = try #require(rejection(#""preset":\#(json)"#, by: Self.cards()))
        #expect(error.failure.message.hasPrefix(message), "\(error.failure.message)")
    }

    @Test func requiresAPresetIfOnlyPresetsAreAccepted() throws {
        var reader = try Self.cards()
        reader.requiresPreset = true
        #expect((try read(#""preset":"card""#, by: reader) as Job).preset?.name == "card")
        for members in ["", #""preset":null"#, #""width":8"#] {
            #expect(
                rejection(members, by: reader)?.failure.message
                    == "preset: is missing: only jobs with a preset are accepted")
        }
    }

    @Test(arguments: [
        ("", "expected JSON"), ("[]", "expected an object"), ("{}", "job: is missing"),
        (#"{"job":{"source":"initials:A"}}"#, "job.source: belongs to a single job"),
        (#"{"job":{"preset":"a"}}"#, "job.preset: belongs to a single job"),
        (#"{"job":{"slot":"a"}}"#, "job.slot: belongs"), (#"{"job":{"metadata":1}}"#, "job.metadata: belongs"),
        (#"{"job":{"width":-1}}"#, "job.width: expected"), (#"{"job":{"widht":1}}"#, "job.widht: unknown field"),
        (#"{"job":{"width":1,"sizer":"natural"}}"#, "job.sizer: cannot be combined"),
        (#"{"job":{},"overridable":["widht"]}"#, "overridable: widht is not a field of jobs"),
        (#"{"job":{},"overridable":["id"]}"#, "overridable: id: can be set in every job"),
        (#"{"job":{},"overridable":["width","width"]}"#, "overridable[1]: width is listed twice"),
        (#"{"job":{},"overridable":"width"}"#, "overridable: expected an array"),
        (#"{"job":{},"version":0}"#, "version: expected 1 to"), (#"{"job":{},"name":"b"}"#, #"name: expected "a""#),
        (#"{"job":{},"jobs":{}}"#, "jobs: unknown member"),
    ])
    func refusesInvalidPresets(json: String, reason: String) {
        #expect {
            try JobDecoder().check(Preset("a", json: Array(json.utf8)))
        } throws: {
            ($0 as? InvalidPresetError)?.reason.hasPrefix(reason) == true
        }
    }

    @Test(arguments: ["", "only", ".a", "a b", String(repeating: "a", count: 65)])
    func refusesInvalidNames(name: String) {
        #expect(throws: InvalidPresetError.self) { try Preset(name, json: Array(#"{"job":{}}"#.utf8)) }
    }

    @Test func roundTripsItsJSON() throws {
        let preset = try Preset("card", json: Array(Self.card.utf8))
        let same = try Preset("card", json: preset.json)
        #expect(same.json == preset.json && same.version == 3 && same.hasOwnVersion)
        let contents = try Preset("card", json: preset.contents)
        #expect(contents.contents == preset.contents && contents.version == 1 && !contents.hasOwnVersion)
    }

    /// Workers thereby use the version that was validated, or a newer one.
    @Test func validatedJobsRequireTheVersionThatWasUsed() throws {
        var draft = JobBuilder()
        draft.set("source", "initials:A")
        draft.set("preset", "card")
        let job = try ValidatedJob(draft, fallbackID: "a", by: Self.cards())
        #expect(
            String(decoding: job.message, as: UTF8.self)
                == #"{"source":"initials:A","preset":{"name":"card","version":3}}"#)
    }

    @Test func readsTheIdentityOfJobsWithUnknownPresets() throws {
        let job = try JobDecoder().readIdentity(
            Array(
                #"{"id":"a","source":"initials:A","preset":"none","width":"?","tenant":"t","deadline":5,"slot":"s"}"#
                    .utf8),
            defaultID: "b"
        ).job
        #expect(job.id == "a" && job.tenant == "t" && job.deadline == .after(5) && job.slot?.name == "s")
        #expect(throws: InvalidJobError.self) {
            try JobDecoder().readIdentity(Array(#"{"id":"","preset":"none"}"#.utf8), defaultID: "b")
        }
    }

    /// A program of an older release, or without an extension, may not know all fields of a registered preset.
    @Test func reportsTemplatesThatAreInvalidHere() throws {
        let preset = try Preset("new", json: Array(#"{"job":{"processors":["sparkle"]}}"#.utf8))
        var reader = JobDecoder()
        reader.findPreset = { _ in preset }
        let error = try #require(rejection(#""preset":"new""#, by: reader))
        #expect(error.failure.message.hasPrefix("preset: the preset new is not valid in this program: processors"))
    }
}
