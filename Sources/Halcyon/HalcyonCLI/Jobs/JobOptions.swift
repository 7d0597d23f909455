import Formats
import HalcyonModel
import JSON

/// The options for scheduling, caching and delivery of a job. They do not affect its output.
enum JobOptions {
    static let tenant = FieldOption(
        "tenant", .tenant, as: "NAME", help: "The tenant that owns the result. Each tenant has separate keys.")

    private static let schedule: [FieldOption] = [
        FieldOption("id", .text, as: "TEXT", help: "The id of the job in its events. Default: a generated id."),
        FieldOption(
            "lane", field: "priority", .oneOf(Lane.allCases.map(\.rawValue)), as: "LANE",
            help: "The priority lane of the job."),
        FieldOption(
            "not-before", field: "notBefore", .time, as: "WHEN",
            help: "When the job starts at the earliest: seconds after submission, or a date and time."),
        FieldOption(
            "deadline", .time, as: "WHEN",
            help: """
                When the job expires: seconds after submission, or after --not-before, or a date and time.
                """),
        FieldOption(
            "slot", .text, as: "NAME",
            help: "The display slot of the image. A newer job for the same slot supersedes an unfinished one."),
        FieldOption(
            "generation", .integer(), as: "N",
            help: "The generation within the slot. The highest one wins. Default: the time of submission."),
        FieldOption(
            flag: "prefetch",
            help: "Only load the source into the source cache, for later jobs. Renders nothing."),
    ]

    private static let cache: [FieldOption] = [
        FieldOption(
            "max-age", .number, as: "SECONDS",
            help: "The TTL of the result. 0 follows the response headers; below 0 it is not stored."),
        tenant,
        FieldOption(
            repeated: "tag", field: "tags", .tag, as: "TAG",
            help: "Tag the result so that it can be purged by tag. Repeatable."),
        FieldOption(
            flag: "no-memory-cache", field: "cache", member: "memory", sets: false,
            help: "Do not read or store the result in Redis. The event carries the image."),
        FieldOption(
            flag: "no-result-store", field: "cache", member: "store", sets: false,
            help: "Do not read the result from the result store, or write it there."),
        FieldOption(
            flag: "no-source-cache", field: "cache", member: "source", sets: false,
            help: "Do not read or store the source in the source caches."),
        FieldOption(
            flag: "reload", field: "cache", member: "reload",
            help: "Ignore cached data, fetch and render again, and store the new result."),
        FieldOption(
            flag: "only-if-cached", field: "cache", member: "onlyIfCached",
            help: "Use only a stored result or a cached source. Fail with not_found instead of contacting an origin."),
    ]

    private static let delivery: [FieldOption] = [
        FieldOption(
            "delivery", .oneOf(Job.Delivery.Word.allCases.map(\.rawValue)), as: "HOW",
            help: "How the event delivers the image: by the key of the result, or inline."),
        FieldOption(
            "put", field: "delivery", .put, as: "URL",
            help: """
                Upload the image to this URL with HTTP PUT before the ready event. For jobs with several outputs, a \
                template such as https://example.org/{variant}.{format}, with the placeholders variant, index, width, \
                height, format and key.
                """),
        FieldOption(
            "webhook", .text, as: "TARGET",
            help: "Also report the end of the job by HTTP, to a URL or a webhook name that the workers know."),
        FieldOption("metadata", .json, as: "JSON", help: "Arbitrary JSON to copy into the events of the job."),
        FieldOption("alt-text", .text, as: "TEXT", help: "Text to copy into the events of the job."),
        FieldOption("placeholder", .text, as: "TEXT", help: "Text to copy into the events of the job."),
    ]

    static let groups = [
        FieldOptionGroup("Schedule", schedule), FieldOptionGroup("Cache", cache),
        FieldOptionGroup("Delivery", delivery),
    ]

    /// The options that the short help of commands shows.
    static let brief: Set = ["lane", "max-age", "tenant", "tag"]
}

extension ValueKind<JSONArgument> {
    /// The URL that the result is uploaded to.
    static var put: Self {
        ValueKind("an http or https URL") { text in
            JSONArgument(String(decoding: JSONWriter.object { $0.member("put", text) }, as: UTF8.self))
        }
    }

    static var json: Self { ValueKind(#"JSON such as {"article": 17}"#) { JSONArgument($0) } }

    /// A number of seconds, or a date and time as a string.
    static var time: Self {
        ValueKind("seconds, or a date and time such as 2026-12-24T18:00:00Z") { text in
            if Double(text)?.isFinite == true { return JSONArgument(text) }
            return Timestamp(rfc3339: text) == nil ? nil : JSONArgument(String(decoding: text.json, as: UTF8.self))
        }
    }
}
