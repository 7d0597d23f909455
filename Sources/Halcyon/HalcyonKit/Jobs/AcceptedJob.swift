import Foundation

/// What a gateway answers to a job that it has taken: the brokers have it, and its end will be told.
public struct AcceptedJob: Sendable, Equatable, Decodable {
    /// The job's id.
    public let id: String
    /// The lane it went to.
    public let lane: ImageJob.Priority
    /// The keys under which its images will be, in the order of its variants.
    public let keys: [String]
    /// Fields that the gateway does not know.
    public let unknownFields: [String]

    private enum CodingKeys: String, CodingKey { case id, lane, images, unknownFields }

    /// Reads a gateway's answer.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = try container.decode(String.self, forKey: .id)
        lane = try container.decode(ImageJob.Priority.self, forKey: .lane)
        keys = try container.decode([String].self, forKey: .images).map { path in
            let name = String(path.split(separator: "/").last ?? "")
            return name.removingPercentEncoding ?? name
        }
        unknownFields = try container.decodeIfPresent([String].self, forKey: .unknownFields) ?? []
    }
}

/// What is known of a job.
public struct JobState: Sendable, Equatable, Decodable {
    /// Where it stands: `accepted`, or what its last event tells.
    public enum State: String, Sendable, Codable {
        /// See events; `accepted` before the first.
        case accepted, started, ready, failed, cancelled, superseded

        /// Whether the job has ended.
        public var isEnd: Bool { [.ready, .failed, .cancelled, .superseded].contains(self) }
    }

    /// The job's id.
    public let id: String
    /// Where it stands.
    public let state: State
    /// Its last event, unless there is none or it is larger than 64 KiB.
    public let event: ImageEvent?
}
