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

extension ImageEvent {
    /// The job that an event is about.
    public struct Job: Sendable, Equatable, Decodable {
        /// The job's id.
        public let id: String
        /// The values that the job asked to be returned.
        public let metadata, placeholder, altText: JSONValue?
        /// The preset of the job; nil if it has none.
        public let preset: Preset?

        /// A preset, in the version that was used.
        public struct Preset: Sendable, Equatable, Decodable {
            /// The name of the preset.
            public let name: String
            /// The version, from 1.
            public let version: Int
        }
    }

    /// The data of a `progress` event: how much of a source has been loaded.
    public struct Progress: Sendable, Equatable, Decodable {
        /// The job that loads the source.
        public let job: Job
        /// The current stage: `fetch`, or one of a later version.
        public let stage: String
        /// The number of bytes received.
        public let received: Int
        /// The number of bytes of the whole source; nil if its origin does not say.
        public let total: Int?
        /// The attempt at the job, from 1.
        public let attempt: Int
    }

    /// The data of a `ready` event: the images of a job.
    public struct Ready: Sendable, Equatable, Decodable {
        /// The job that has made the images.
        public let job: Job
        /// The outputs in the order of the job's variants, without those of ``failures``.
        public let variants: [Variant]
        /// The variants that could not be made, of a job with `partial`.
        public let failures: [Failure]
        /// The place that the results came from.
        public let cacheStatus: CacheStatus
        /// Milliseconds by stage, and their `total`.
        public let timings: [String: Double]
        /// Warnings for people, for example about unknown fields of the job.
        public let warnings: [String]
        /// The alternative source that was used; nil for the source of the job.
        public let alternative: String?
        /// The failure of the job, if the images show its fallback picture.
        public let fallback: FallbackReason?

        /// The reason why a job ended with its fallback picture.
        public struct FallbackReason: Sendable, Equatable, Decodable {
            /// The reason.
            public let code: FailureCode
            /// A description of the failure for people.
            public let message: String
            /// True if the same job may succeed later.
            public let retryable: Bool
        }

        /// A variant that could not be made or uploaded.
        public struct Failure: Sendable, Equatable, Decodable {
            /// The index of the variant in the job.
            public let variant: Int
            /// The reason.
            public let code: FailureCode
            /// A description of the failure for people.
            public let message: String
        }

        /// The place that results came from.
        public struct CacheStatus: RawRepresentable, Sendable, Hashable, Codable {
            /// The value in the event.
            public let rawValue: String
            /// Creates a value that has no static member here.
            public init(rawValue: String) { self.rawValue = rawValue }

            /// The result cache, the result store, stored sources, the origin, or another job with the same work at the
            /// same time.
            public static let memory = Self(rawValue: "memory"), store = Self(rawValue: "store"),
                sourceCache = Self(rawValue: "source-cache"), network = Self(rawValue: "network"),
                coalesced = Self(rawValue: "coalesced")
        }

        private enum CodingKeys: String, CodingKey {
            case job, variants, failures, cacheStatus = "origin", timings, warnings, alternative, fallback
        }

        /// Decodes the data of an event.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            job = try container.decode(Job.self, forKey: .job)
            variants = try container.decode([Variant].self, forKey: .variants)
            failures = try container.decodeIfPresent([Failure].self, forKey: .failures) ?? []
            cacheStatus = try container.decode(CacheStatus.self, forKey: .cacheStatus)
            timings = try container.decode([String: Double].self, forKey: .timings)
            warnings = try container.decodeIfPresent([String].self, forKey: .warnings) ?? []
            alternative = try container.decodeIfPresent(String.self, forKey: .alternative)
            fallback = try container.decodeIfPresent(FallbackReason.self, forKey: .fallback)
        }
    }

    /// One output of a job.
    public struct Variant: Sendable, Equatable, Decodable {
        /// The key of the result.
        public let key: String
        /// The name of the variant, if the job gave it one.
        public let name: String?
        /// The size in pixels.
        public let width, height: Int
        /// The format of the file.
        public let format: ImageJob.Format
        /// The size of the file in bytes.
        public let bytes: Int
        /// The SHA-256 of the file, in hexadecimal.
        public let sha256: String
        /// The number of frames of an animation.
        public let frames: Int?
        /// The BlurHash, and the dominant color as `#rrggbb`, if the job asked for them.
        public let blurhash, dominantColor: String?
        /// The part of the upright source that remained when margins were removed, if the job asked for that.
        public let trim: Rect?
        /// The most important colors as `#rrggbb`, the most frequent one first, if the job asked for them.
        public let palette: [String]?
        /// The ThumbHash, if the job asked for it.
        public let thumbhash: Data?
        /// The perceptual hash in hexadecimal, if the job asked for it.
        public let phash: String?
        /// The faces in the image, the most confident first, if the job asked for them.
        public let faces: [Face]?
        /// The facts about the source, if the job asked for them.
        public let info: SourceInfo?
        /// The outcome of the search for the size or the quality, if the job asked for one.
        public let encoding: Encoding?
        /// The address to which the file was uploaded: the expanded template without its query, or the scheme, host and
        /// port of a URL that the job gave. Nil if it was not uploaded.
        public let put: String?
        /// The file, if the event contains it.
        public let data: Data?
        /// The public URL of the file in the result store, if it has one. The file may get there a moment later.
        public let url: String?
        private let expiry: ISO8601Date?

        /// A part of an image, in pixels from its top left corner.
        public struct Rect: Sendable, Equatable, Decodable {
            /// The left side, the upper side, and the lengths.
            public let x, y, width, height: Int
        }

        /// The time at which the result expires; nil if it is not stored.
        public var expiresAt: Date? { expiry?.date }

        private enum CodingKeys: String, CodingKey {
            case key, name, width, height, format, bytes, sha256, frames, blurhash, dominantColor, trim, put, data, url
            case palette, thumbhash, phash, faces, info, encoding
            case expiry = "expiresAt"
        }
    }

    /// A face in an image.
    public struct Face: Sendable, Equatable, Decodable {
        /// The left side, the upper side, and the lengths, in pixels of the image.
        public let x, y, width, height: Int
        /// The confidence of the detector, 0 to 1.
        public let confidence: Double
    }

    /// Facts about a source.
    public struct SourceInfo: Sendable, Equatable, Decodable {
        /// The format of the file, and its media type.
        public let format, mediaType: String
        /// The size of the file in bytes.
        public let bytes: Int
        /// The size in pixels, after auto-rotation, and the orientation of EXIF.
        public let width, height, orientation: Int
        /// The number of frames of an animation, its duration in milliseconds, and the number of times that it is
        /// played.
        public let frames, duration, loop: Int?
        /// The number of pages of a PDF or TIFF.
        public let pages: Int?
        /// The color model of the samples.
        public let colorSpace: String
        /// The number of bits of a sample.
        public let bitsPerSample: Int?
        /// True if there is an alpha channel.
        public let alpha: Bool
        /// The embedded ICC profile.
        public let profile: Profile?
        /// The video that a frame is from.
        public let video: Video?
        /// True if the file is truncated.
        public let truncated: Bool?
        /// The metadata of the camera.
        public let exif: [String: JSONValue]?
        /// The location where the picture was taken, if it was requested.
        public let location: Location?
        /// The results of the requested analyses.
        public let blurhash, dominantColor: String?
        /// The most important colors as `#rrggbb`.
        public let palette: [String]?
        /// The ThumbHash.
        public let thumbhash: Data?
        /// The perceptual hash in hexadecimal.
        public let phash: String?
        /// The faces in the source, if they were asked for.
        public let faces: [Face]?

        /// Facts about a video.
        public struct Video: Sendable, Equatable, Decodable {
            /// The codec, such as `h264`.
            public let codec: String
            /// The duration in milliseconds.
            public let duration: Int?
        }

        /// An ICC profile.
        public struct Profile: Sendable, Equatable, Decodable {
            /// The description, and the color space.
            public let name, colorSpace: String?
        }

        /// A position on Earth.
        public struct Location: Sendable, Equatable, Decodable {
            /// Degrees of WGS 84.
            public let latitude, longitude: Double
            /// Meters above sea level.
            public let altitude: Double?
        }
    }

    /// The outcome of the search for the size or the quality of a file.
    public struct Encoding: Sendable, Equatable, Decodable {
        /// The chosen quality; nil for a lossless file.
        public let quality: Int?
        /// The chosen number of colors; nil without a palette.
        public let colors: Int?
        /// The similarity (SSIM) to the picture before encoding; nil if it was not measured.
        public let similarity: Double?
        /// The number of files that were encoded; 0 if the file of the source was used.
        public let encodings: Int
    }

    /// The data of a `failed` event.
    public struct Failed: Sendable, Equatable, Decodable {
        /// The job that failed.
        public let job: Job
        /// The reason.
        public let code: FailureCode
        /// A description of the failure for people.
        public let message: String
        /// True if the same job may succeed later.
        public let retryable: Bool
        /// The number of attempts.
        public let attempts: Int
    }

    /// The data of a `purged` event.
    public struct Purged: Sendable, Equatable, Decodable {
        /// The source, tag or key that was purged; the other two are nil. All of them are nil if all results of the
        /// tenant were purged.
        public let source, tag, key: String?
        /// The tenant that owned the results.
        public let tenant: String?
        /// The number of results.
        public let count: Int
        /// The tags by which CDNs find responses with the purged results.
        public let cacheTags: [String]?
    }
}
