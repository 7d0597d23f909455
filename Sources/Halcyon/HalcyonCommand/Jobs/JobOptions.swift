import Formats
import HalcyonModel
import JSON

/// The options that say how a job is done and told of, whatever is made of its source.
enum JobOptions {
    static let tenant = FieldOption(
        "tenant", .tenant, as: "NAME", help: "Whose result it is: another tenant's have other keys.")

    static let fields: [FieldOption] = [
        FieldOption(
            "lane", field: "priority", .oneOf(Lane.allCases.map(\.rawValue)), as: "LANE", help: "Which jobs go first."),
        FieldOption("id", .text, as: "TEXT", help: "The job's name in its events; made up when it has none."),
        FieldOption(
            "max-age", .number, as: "SECONDS", help: "How long the result is kept; below 0 it is not stored at all."),
        tenant,
        FieldOption(
            repeated: "tag", field: "tags", .tag, as: "TAG",
            help: "A word that the result can be purged by; may be given again for more."),
        FieldOption(
            "slot", .text, as: "NAME",
            help: "The place that the image is for: a later job for it supersedes this one if that has not ended."),
        FieldOption(
            "generation", .integer(), as: "N",
            help: "Which of the jobs for a slot is newer; the time of submission unless given."),
        FieldOption(
            flag: "no-memory-cache", field: "cache", member: "memory", sets: false,
            help: "Neither look for the result in Redis nor keep it there; its event carries it."),
        FieldOption(
            flag: "no-source-cache", field: "cache", member: "source", sets: false,
            help: "Neither look for the source in the caches of sources nor keep it there."),
        FieldOption(
            flag: "reload", field: "cache", member: "reload",
            help: "Fetch and make it anew, whatever is there, and keep that."),
        FieldOption(
            flag: "only-if-cached", field: "cache", member: "onlyIfCached",
            help: "Take a result, or a kept source, that is there; fail as not_found rather than ask an origin."),
        FieldOption(
            "delivery", .oneOf(Job.Delivery.Word.allCases.map(\.rawValue)), as: "HOW",
            help: "Whether the event names the result's key or carries the image."),
        FieldOption(
            "put", field: "delivery", .put, as: "URL",
            help: "Where the image is put by HTTP before its event says that it is ready; for one output."),
        FieldOption(
            "deadline", .deadline, as: "WHEN",
            help: "When nobody wants it any more: seconds from now, or a date and time."),
        FieldOption(
            "webhook", .text, as: "TARGET",
            help: "Where its end is told by HTTP too: a name that the workers know, or a URL."),
        FieldOption("metadata", .json, as: "JSON", help: "Given back in the job's events."),
        FieldOption("alt-text", .text, as: "TEXT", help: "Given back in the job's events."),
        FieldOption("placeholder", .text, as: "TEXT", help: "Given back in the job's events."),
    ]
}

extension ValueKind<GivenJSON> {
    /// The URL that a result is put at.
    static var put: Self {
        ValueKind("an http or https URL") { text in
            GivenJSON(String(decoding: JSONWriter.object { $0.member("put", text) }, as: UTF8.self))
        }
    }

    static var json: Self { ValueKind(#"JSON such as {"article": 17}"#) { GivenJSON($0) } }

    /// A number as it is, anything else as a text.
    static var deadline: Self {
        ValueKind("seconds, or a date and time such as 2026-12-24T18:00:00Z") { text in
            if Double(text)?.isFinite == true { return GivenJSON(text) }
            return Timestamp(rfc3339: text) == nil ? nil : GivenJSON(String(decoding: text.json, as: UTF8.self))
        }
    }
}
