import HalcyonCoding
import HalcyonModel

/// Decodes a whole message.
func read(message: String, by reader: JobDecoder = JobDecoder(isStrict: true)) throws(InvalidJobError) -> DecodedJob {
    try reader.read(Array(message.utf8), defaultID: "halcyon.jobs-0-7")
}

/// Decodes a job of a valid source and these members.
func read(_ members: String, by reader: JobDecoder = JobDecoder(isStrict: true)) throws(InvalidJobError) -> Job {
    let comma = members.isEmpty ? "" : ","
    return try read(message: #"{"source":"https://example.org/cat.jpg"\#(comma)\#(members)}"#, by: reader).job
}

/// The error for a job of a valid source and these members, or nil if it is accepted.
func rejection(_ members: String, by reader: JobDecoder = JobDecoder(isStrict: true)) -> InvalidJobError? {
    do {
        _ = try read(members, by: reader) as Job
        return nil
    } catch {
        return error
    }
}

/// The error for a whole message, or nil if it is accepted.
func rejection(message: String, by reader: JobDecoder = JobDecoder(isStrict: true)) -> InvalidJobError? {
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
