import Foundation

/// An event of a cluster, such as the end of a job: a CloudEvent of the topic of events.
///
/// Values that this version does not know never fail to decode: an unknown type becomes ``Kind/other(_:)``, and codes,
/// formats and the like keep their raw values. Any `JSONDecoder` can decode events, whatever its date strategy.
public struct ImageEvent: Sendable, Equatable {
    /// A unique id. It stays the same if a job that is delivered twice causes the event again.
    public let id: String
    /// The time of the event.
    public let time: Date
    /// The source, as in the job or the purge.
    public let subject: String?
    /// The content of the event, by type.
    public let kind: Kind

    /// The content of an event, by type.
    public enum Kind: Sendable, Equatable {
        /// Work for the job has started.
        case started(Job)
        /// The job's source is being loaded.
        case progress(Progress)
        /// The images are ready. The job has ended.
        case ready(Ready)
        /// The job has failed, and has ended.
        case failed(Failed)
        /// The job has been cancelled, and has ended.
        case cancelled(Job)
        /// The job has been superseded by one of this generation for the same slot, and has ended.
        case superseded(Job, by: Int)
        /// Results have been purged.
        case purged(Purged)
        /// Jobs of the batch have ended. Sent now and then.
        case batchProgress(Batch)
        /// All jobs of the batch have ended.
        case batchCompleted(Batch)
        /// An event of a type that this version does not know.
        case other(String)
    }

    /// The job that the event is about.
    public var job: Job? {
        switch kind {
        case .started(let job), .cancelled(let job), .superseded(let job, _): job
        case .progress(let progress): progress.job
        case .ready(let ready): ready.job
        case .failed(let failed): failed.job
        case .purged, .batchProgress, .batchCompleted, .other: nil
        }
    }
}

extension ImageEvent: Decodable {
    private enum CodingKeys: String, CodingKey { case id, time, subject, type, data }
    private struct JobData: Decodable { let job: Job }
    private struct BatchData: Decodable { let batch: Batch }
    private struct SupersededData: Decodable {
        let job: Job
        let supersededBy: Int
    }

    /// Decodes an event of the event schema.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = try container.decode(String.self, forKey: .id)
        time = try container.decode(ISO8601Date.self, forKey: .time).date
        subject = try container.decodeIfPresent(String.self, forKey: .subject)
        let type = try container.decode(String.self, forKey: .type)
        func data<Value: Decodable>(_ type: Value.Type) throws -> Value { try container.decode(type, forKey: .data) }
        switch type {
        case "halcyon.image.started": kind = .started(try data(JobData.self).job)
        case "halcyon.image.progress": kind = .progress(try data(Progress.self))
        case "halcyon.image.ready": kind = .ready(try data(Ready.self))
        case "halcyon.image.failed": kind = .failed(try data(Failed.self))
        case "halcyon.image.cancelled": kind = .cancelled(try data(JobData.self).job)
        case "halcyon.image.superseded":
            let data = try data(SupersededData.self)
            kind = .superseded(data.job, by: data.supersededBy)
        case "halcyon.image.purged": kind = .purged(try data(Purged.self))
        case "halcyon.batch.progress": kind = .batchProgress(try data(BatchData.self).batch)
        case "halcyon.batch.completed": kind = .batchCompleted(try data(BatchData.self).batch)
        default: kind = .other(type)
        }
    }
}

/// A date in ISO 8601, whatever the decoder's date strategy.
struct ISO8601Date: Sendable, Equatable, Decodable {
    let date: Date

    init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        let hasFraction = text.contains(".")
        date = try Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: hasFraction))
    }
}

/// The reason for the failure of a job.
public struct FailureCode: RawRepresentable, Sendable, Hashable, Codable {
    /// The code in events.
    public let rawValue: String
    /// Creates a code that has no static member here.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The job is invalid, was not done before its deadline, or crashed its workers.
    public static let invalidJob = Self(rawValue: "invalid_job"), expired = Self(rawValue: "expired"),
        poison = Self(rawValue: "poison")
    /// The source is not allowed, or does not exist.
    public static let unsupportedSource = Self(rawValue: "unsupported_source"),
        blockedAddress = Self(rawValue: "blocked_address"), notFound = Self(rawValue: "not_found"),
        gone = Self(rawValue: "gone"), forbidden = Self(rawValue: "forbidden")
    /// The source could not be loaded.
    public static let httpError = Self(rawValue: "http_error"), dnsError = Self(rawValue: "dns_error"),
        connectError = Self(rawValue: "connect_error"), originUnavailable = Self(rawValue: "origin_unavailable"),
        tlsError = Self(rawValue: "tls_error"), timeout = Self(rawValue: "timeout"),
        tooManyRedirects = Self(rawValue: "too_many_redirects"), providerError = Self(rawValue: "provider_error")
    /// The image cannot be processed.
    public static let tooLarge = Self(rawValue: "too_large"), tooManyPixels = Self(rawValue: "too_many_pixels"),
        unsupportedFormat = Self(rawValue: "unsupported_format"), corruptImage = Self(rawValue: "corrupt_image")
    /// Halcyon itself has failed.
    public static let `internal` = Self(rawValue: "internal")
}
