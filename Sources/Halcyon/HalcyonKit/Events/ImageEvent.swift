import Foundation

/// What happened: a CloudEvent, as it is on the topic of events.
public struct ImageEvent: Sendable, Equatable {
    /// Unique for each event, and the same when a job that is delivered twice causes it again.
    public let id: String
    /// When it happened.
    public let time: Date
    /// The source, as the job or the purge gave it.
    public let subject: String?
    /// What happened.
    public let kind: Kind

    /// What happened.
    public enum Kind: Sendable, Equatable {
        /// Work for the job began.
        case started(Job)
        /// Its source is being loaded, which takes long.
        case progress(Progress)
        /// The images are there. The job has ended.
        case ready(Ready)
        /// There will be no image. The job has ended.
        case failed(Failed)
        /// Somebody cancelled it. The job has ended.
        case cancelled(Job)
        /// A job of this generation is for the same slot. The job has ended.
        case superseded(Job, by: Int)
        /// Results were forgotten.
        case purged(Purged)
        /// An event of a later version, by its type.
        case other(String)
    }

    /// The job that it is about, and what that wanted given back.
    public struct Job: Sendable, Equatable, Decodable {
        /// The job's id.
        public let id: String
        /// The job's own.
        public let metadata, placeholder, altText: JSONValue?
    }

    /// One output.
    public struct Variant: Sendable, Equatable, Decodable {
        /// Of the result.
        public let key: String
        /// In pixels.
        public let width, height: Int
        /// Of the file.
        public let format: ImageJob.Format
        /// Length of the file.
        public let bytes: Int
        /// Of the file, in hexadecimal digits.
        public let sha256: String
        /// Of an animation.
        public let frames: Int?
        /// Where the job asked for it; the colour as `#rrggbb`.
        public let blurhash, dominantColor: String?
        /// When it will be forgotten; nil of what is not stored.
        public let expiresAt: Date?
        /// The file, where it was delivered inline.
        public let data: Data?
    }

    /// How much of a source has come.
    public struct Progress: Sendable, Equatable, Decodable {
        /// Whose source it is.
        public let job: Job
        /// What is being done: `fetch`.
        public let stage: String
        /// Bytes that have come.
        public let received: Int
        /// Bytes of all of it; nil where the origin does not say.
        public let total: Int?
        /// Which attempt at the job it is, from 1.
        public let attempt: Int
    }

    /// The images.
    public struct Ready: Sendable, Equatable, Decodable {
        /// Where the results came from.
        public enum Origin: String, Sendable, Codable {
            /// Stored; made from a stored source; fetched; made for another job at the same time.
            case memory
            case sourceCache = "source-cache"
            case network, coalesced
        }

        /// Whose they are.
        public let job: Job
        /// A variant that could not be made.
        public struct Failure: Sendable, Equatable, Decodable {
            /// Where in the job it stands, from 0.
            public let variant: Int
            /// Why.
            public let code: FailureCode
            /// For people.
            public let message: String
        }

        /// The outputs, in the order of the job's variants, without those of ``failures``.
        public let variants: [Variant]
        /// Of a job with `partial`: the variants that could not be made.
        public let failures: [Failure]
        /// Where they came from.
        public let origin: Origin
        /// Milliseconds by stage; `total` is all of it.
        public let timings: [String: Double]
        /// What was noticed of the job and did not stop it, such as the fields that are unknown, for people.
        public let warnings: [String]

        private enum CodingKeys: String, CodingKey { case job, variants, failures, origin, timings, warnings }

        /// Reads the `data` of an event of the type `halcyon.image.ready`.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            job = try container.decode(Job.self, forKey: .job)
            variants = try container.decode([Variant].self, forKey: .variants)
            failures = try container.decodeIfPresent([Failure].self, forKey: .failures) ?? []
            origin = try container.decode(Origin.self, forKey: .origin)
            timings = try container.decode([String: Double].self, forKey: .timings)
            warnings = try container.decodeIfPresent([String].self, forKey: .warnings) ?? []
        }
    }

    /// Why there is no image.
    public struct Failed: Sendable, Equatable, Decodable {
        /// Whose it would be.
        public let job: Job
        /// Why.
        public let code: FailureCode
        /// For people.
        public let message: String
        /// Whether the same job may succeed later.
        public let retryable: Bool
        /// How often it was tried.
        public let attempts: Int
    }

    /// What was forgotten.
    public struct Purged: Sendable, Equatable, Decodable {
        /// What it went by: one of the three.
        public let source, tag, key: String?
        /// Whose results they were.
        public let tenant: String?
        /// How many there were.
        public let count: Int
    }

    /// The job that it is about.
    public var job: Job? {
        switch kind {
        case .started(let job), .cancelled(let job), .superseded(let job, _): job
        case .progress(let progress): progress.job
        case .ready(let ready): ready.job
        case .failed(let failed): failed.job
        case .purged, .other: nil
        }
    }
}

extension ImageEvent: Decodable {
    private enum CodingKeys: String, CodingKey { case id, time, subject, type, data }
    private struct About: Decodable { let job: Job }
    private struct Superseded: Decodable {
        let job: Job
        let supersededBy: Int
    }

    static let decoder: JSONDecoder = {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let text = try decoder.singleValueContainer().decode(String.self)
            return try Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        }
        return decoder
    }()

    /// Reads an event of the schema of events, whose dates are those of ISO 8601 with milliseconds, as this module's own decoder reads them.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = try container.decode(String.self, forKey: .id)
        time = try container.decode(Date.self, forKey: .time)
        subject = try container.decodeIfPresent(String.self, forKey: .subject)
        let type = try container.decode(String.self, forKey: .type)
        func data<Value: Decodable>(_ type: Value.Type) throws -> Value { try container.decode(type, forKey: .data) }
        switch type {
        case "halcyon.image.started": kind = .started(try data(About.self).job)
        case "halcyon.image.progress": kind = .progress(try data(Progress.self))
        case "halcyon.image.ready": kind = .ready(try data(Ready.self))
        case "halcyon.image.failed": kind = .failed(try data(Failed.self))
        case "halcyon.image.cancelled": kind = .cancelled(try data(About.self).job)
        case "halcyon.image.superseded":
            let event = try data(Superseded.self)
            kind = .superseded(event.job, by: event.supersededBy)
        case "halcyon.image.purged": kind = .purged(try data(Purged.self))
        default: kind = .other(type)
        }
    }
}
