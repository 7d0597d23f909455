import HalcyonCoding
import HalcyonModel
import Testing

/// Messages of the topic `control`, as docs/control.md describes them.
@Suite struct ControlMessageTests {
    static let key = ResultKey(SampleEvents.key)!

    static func read(_ json: String, by reader: JobDecoder = JobDecoder()) throws(InvalidControlMessageError)
        -> ControlMessage
    {
        try reader.control(Array(json.utf8))
    }

    static let messages: [(json: String, message: ControlMessage)] = [
        (#"{"cancel":"article-17-hero"}"#, .cancel(.job("article-17-hero"))),
        (#"{"cancel":"a","owner":"shop"}"#, .cancel(.job("a", ownedBy: "shop"))),
        (
            #"{"purge":{"source":"https://example.org/cat.jpg"}}"#,
            .purge(Purge(.source(try! Source("https://example.org/cat.jpg"))))
        ),
        (#"{"purge":{"tag":"article-17","tenant":"shop-7"}}"#, .purge(Purge(.tag("article-17"), of: "shop-7"))),
        (#"{"purge":{"tag":"a"},"time":1764115200000001}"#, .purge(Purge(.tag("a")), at: 1_764_115_200_000_001)),
        (#"{"purge":{"key":"\#(SampleEvents.key)"}}"#, .purge(Purge(.key(key)))),
        (#"{"preset":"card"}"#, .preset("card")),
        (#"{"cancel":{"tenant":"shop-7"}}"#, .cancel(.tenant("shop-7"))),
        (#"{"cancel":{"tag":"article-17","tenant":"shop-7"}}"#, .cancel(.tag("article-17", of: "shop-7"))),
        (#"{"cancel":{"tag":"a"}}"#, .cancel(.tag("a"))),
        (
            #"{"cancel":{"source":"https://example.org/cat.jpg","tenant":"shop-7"}}"#,
            .cancel(.source(try! Source("https://example.org/cat.jpg"), of: "shop-7"))
        ),
        (#"{"pause":{"lane":"low"}}"#, .pause(.lane(.low))),
        (#"{"pause":{"tenant":"acme"},"time":1764115200000001}"#, .pause(.tenant("acme"), at: 1_764_115_200_000_001)),
        (#"{"resume":{"lane":"high"},"time":1764115200000001}"#, .resume(.lane(.high), at: 1_764_115_200_000_001)),
        (#"{"list":{"reply":"b0-_Z"}}"#, .list(JobListRequest(reply: "b0-_Z"))),
        (
            #"{"list":{"reply":"x","limit":7,"tenant":"acme","lane":"normal"}}"#,
            .list(JobListRequest(reply: "x", limit: 7, tenant: "acme", lane: .normal))
        ),
    ]

    @Test(arguments: messages)
    func roundTripsEachMessage(json: String, message: ControlMessage) throws {
        #expect(try Self.read(json) == message)
        #expect(String(decoding: message.json, as: UTF8.self) == json)
    }

    @Test func roundTripsPurgesOfAnySource() throws {
        for source in RandomJobs.sources {
            let job = JSONValue.object([.init(name: "source", value: source)])
            let wanted = try JobDecoder().read(job.bytes, defaultID: "-").job.source
            let message = ControlMessage.purge(Purge(.source(wanted)))
            #expect(try JobDecoder().control(message.json) == message)
        }
        var reader = JobDecoder()
        reader.customSources = ["gallery"]
        for source in [#""gallery:7""#, #"{"gallery":{"id":7,"a":[1]}}"#] {
            let wanted = try reader.read(Array(#"{"source":\#(source)}"#.utf8), defaultID: "-").job.source
            let message = ControlMessage.purge(Purge(.source(wanted)))
            #expect(try reader.control(message.json) == message)
        }
        // A name that starts with a combining character is separated from its prefix.
        let named = try DataSource([1], name: "\u{338}a")
        #expect(try DataSource([1], name: named.name!) == named && DataSource([1], sha256: { _ in "0" }).name == nil)
    }

    @Test func ignoresUnknownMembersAndReportsUnknownMessages() throws {
        #expect(try Self.read(#"{"cancel":"a","reason":"bored","at":[1]}"#) == .cancel(.job("a")))
        #expect(
            try Self.read(#"{"purge":{"tag":"a","tenant":null,"softly":true}}"#) == .purge(Purge(.tag("a"))))
        for json in ["{}", #"{"drain":{"worker":"w-1"}}"#] {
            #expect { try Self.read(json) } throws: {
                if case InvalidControlMessageError.unknown = $0 { true } else { false }
            }
        }
    }

    @Test(arguments: [
        ("", "expected JSON, found nothing"), ("[]", "expected an object"),
        (#"{"cancel":""}"#, "cancel: expected 1 to 128 characters"),
        (#"{"cancel":7}"#, "cancel: expected a string"), (#"{"cancel":null}"#, "cancel: expected a string"),
        (
            #"{"cancel":"a","purge":{"tag":"b"}}"#,
            "expected one of cancel, purge, preset, pause, resume and list, found 2"
        ),
        (#"{"cancel":"a","cancel":"b"}"#, "cancel: duplicate name"),
        (#"{"cancel":"a","owner":7}"#, "owner: expected a string"),
        (#"{"preset":"card","cancel":"a"}"#, "expected one of cancel, purge, preset, pause, resume and list, found 2"),
        (#"{"preset":""}"#, "preset: expected the name of a preset"),
        (#"{"purge":{}}"#, "purge: expected one of source, tag and key, or tenant alone"),
        (
            #"{"purge":{"tag":"a","source":"http://h/a"}}"#,
            "purge: expected one of source, tag and key, or tenant alone"
        ),
        (
            #"{"purge":{"tags":"a","tenant":"t"}}"#,
            "purge.tags: expected nothing else in a purge of all results of a tenant"
        ),
        (#"{"purge":{"tag":""}}"#, "purge.tag: expected 1 to 128 bytes"),
        (#"{"purge":{"key":"halcyon:{0}:1"}}"#, "purge.key: expected a result's key"),
        (#"{"purge":{"source":"http://"}}"#, "purge.source: "),
        (#"{"purge":{"tag":"a","tenant":"a b"}}"#, "purge.tenant: expected 1 to 64 letters"),
        (#"{"purge":"a"}"#, "purge: expected an object"),
        (#"{"cancel":{}}"#, "cancel: expected one of source and tag, or tenant alone"),
        (#"{"cancel":{"tag":"a","source":"http://h/a"}}"#, "cancel: expected one of source and tag, or tenant alone"),
        (
            #"{"cancel":{"tags":"a","tenant":"t"}}"#,
            "cancel.tags: expected nothing else in a cancellation of all jobs of a tenant"
        ),
        (#"{"cancel":{"tenant":"a b"}}"#, "cancel.tenant: expected 1 to 64 letters"),
        (#"{"pause":{}}"#, "pause: expected one of lane and tenant"),
        (#"{"pause":{"lane":"low","tenant":"t"}}"#, "pause: expected one of lane and tenant"),
        (#"{"resume":{"lane":"slow"}}"#, "resume.lane: "), (#"{"pause":"low"}"#, "pause: expected an object"),
        (#"{"list":{}}"#, "list.reply: expected 1 to 64 letters"),
        (#"{"list":{"reply":"a:b"}}"#, "list.reply: expected 1 to 64 letters"),
        (#"{"list":{"reply":"a","limit":1001}}"#, "list.limit: "),
    ])
    func rejectsInvalidMessagesWithReason(json: String, reason: String) {
        #expect { try Self.read(json) } throws: { error in
            guard case InvalidControlMessageError.wrong(let text) = error else { return false }
            return text.contains(reason)
        }
        var small = JobDecoder()
        small.maximumBytes = 20
        #expect(throws: InvalidControlMessageError.self) { try Self.read(#"{"cancel":"0123456789"}"#, by: small) }
    }

    @Test(arguments: [
        "halcyon:{8a7770243f9d04f66ec3ca6401b0f34e}:fdbc61c3f7e63ad74f25e95b66f219e", "", "halcyon:",
        "halcyon:{8a7770243f9d04f66ec3ca6401b0f34e}:handoff:fdbc61c3f7e63ad74f25e95b66f219e9",
        "halcyon:{8a7770243f9d04f66ec3ca6401b0f34E}:fdbc61c3f7e63ad74f25e95b66f219e9",
        "halcyon:8a7770243f9d04f66ec3ca6401b0f34eaa:fdbc61c3f7e63ad74f25e95b66f219e9",
        "Halcyon:{8a7770243f9d04f66ec3ca6401b0f34e}:fdbc61c3f7e63ad74f25e95b66f219e9",
    ])
    func rejectsMalformedResultKeys(text: String) {
        #expect(ResultKey(text) == nil)
        #expect(ResultKey(SampleEvents.key)?.description == SampleEvents.key)
    }
}
