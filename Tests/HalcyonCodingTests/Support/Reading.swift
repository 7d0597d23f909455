import HalcyonCoding
import HalcyonModel

/// Reads a whole message.
func read(message: String, by reader: JobDecoder = JobDecoder(isStrict: true)) throws(InvalidJobError) -> DecodedJob {
    try reader.read(Array(message.utf8), defaultID: "halcyon.jobs-0-7")
}

/// Reads a job of a good source and these members.
func read(_ members: String, by reader: JobDecoder = JobDecoder(isStrict: true)) throws(InvalidJobError) -> Job {
    let comma = members.isEmpty ? "" : ","
    return try read(message: #"{"source":"https://example.org/cat.jpg"\#(comma)\#(members)}"#, by: reader).job
}

/// What a job of a good source and these members is refused for; nil when it is taken.
func refusal(_ members: String, by reader: JobDecoder = JobDecoder(isStrict: true)) -> InvalidJobError? {
    do {
        _ = try read(members, by: reader) as Job
        return nil
    } catch {
        return error
    }
}

/// What a whole message is refused for; nil when it is taken.
func refusal(message: String, by reader: JobDecoder = JobDecoder(isStrict: true)) -> InvalidJobError? {
    do {
        _ = try read(message: message, by: reader)
        return nil
    } catch {
        return error
    }
}

extension Job {
    /// The only output of a job without `variants`, else the first.
    var variant: Variant { variants[0] }
}
