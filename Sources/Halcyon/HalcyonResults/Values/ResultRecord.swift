import HalcyonCoding
import HalcyonModel
import Hashing
import JSON

/// What the store knows about a result beside its file.
///
/// S3 limits records to 2 KB. Therefore tags and faces are short texts, and facts about the source are not included, of
/// which the file consists.
struct ResultRecord: Hashable, Sendable {
    /// The key of the result. Another key shows that the object is not ours or was copied.
    var key: ResultKey
    /// The tenant of the job that made the result; nil for none.
    var tenant: String?
    /// The metadata without ``ResultMetadata/info``.
    var metadata: ResultMetadata
    /// The expiry and the time of storing in milliseconds since 1970, and the name of the TTL policy that determined
    /// the expiry: those of the result in Redis.
    var expiresAt: Int64
    var storedAt: Int64
    var rule: String
    /// The fencing token of the result in microseconds since 1970 by the Redis clock. A purge at this time or later, by
    /// key, tag or tenant, removes the result.
    var fence: Int64
    /// The fencing token of its oldest input, in the same unit. A purge of the source at this time or later removes the
    /// result.
    var since: Int64
    /// The tags and the tenant of the job that made the result.
    var scopes: [PurgeScope]

    /// True if the content of the object is the name of the file, which is another object.
    var isNamed: Bool

    /// The version of the format. A record of another version is a miss. Workers that know only version 1 would read a
    /// record of faces or facts without them.
    private var version: Int64 { metadata.faces == nil && metadata.format != .json ? 1 : 2 }

    /// The record as JSON.
    var json: [UInt8] {
        var writer = JSONWriter(capacity: 512)
        var metadata = metadata
        metadata.faces = nil
        writer.object { writer in
            writer.member("v", version)
            writer.member("key", key.description)
            writer.member("tenant", tenant)
            writer.member("metadata", metadata)
            writer.member("faces", self.metadata.faces.map(Self.text(of:)))
            writer.member("expiresAt", expiresAt)
            writer.member("storedAt", storedAt)
            writer.member("rule", rule)
            writer.member("fence", fence)
            writer.member("since", since)
            writer.member("named", isNamed ? true : nil)
            writer.member("scopes", scopes.map(\.compact).joined())
        }
        return writer.bytes
    }

    /// Parses a record.
    /// - Throws: ``JSONError`` if it was written by another program or by another version.
    init(json: [UInt8]) throws(JSONError) {
        let value = try JSON.parse(json, maximumSize: 1 << 16)
        func required(_ name: String) throws(JSONError) -> JSONElement {
            guard let member = value.member(name) else { throw JSONError(.missing, "is missing", path: name) }
            return member
        }
        guard try (1...2).contains(required("v").integer()) else {
            throw JSONError(.invalid, "is another version", path: "v")
        }
        guard let key = ResultKey(try required("key").string()) else {
            throw JSONError(.invalid, "is not a key", path: "key")
        }
        self.key = key
        tenant = try value.member("tenant")?.string()
        metadata = try ResultMetadata(json: try required("metadata").bytes)
        if let faces = try value.member("faces")?.string() { metadata.faces = try Self.faces(faces) }
        expiresAt = try required("expiresAt").integer()
        storedAt = try required("storedAt").integer()
        rule = try required("rule").string()
        fence = try required("fence").integer()
        since = try required("since").integer()
        isNamed = try value.member("named")?.bool() ?? false
        let list = Array(try required("scopes").string().utf8)
        guard list.count % PurgeScope.compactLength == 0 else {
            throw JSONError(.invalid, "is not a list of scopes", path: "scopes")
        }
        scopes = []
        for start in stride(from: 0, to: list.count, by: PurgeScope.compactLength) {
            let text = String(decoding: list[start..<start + PurgeScope.compactLength], as: UTF8.self)
            guard let scope = PurgeScope(compact: text) else {
                throw JSONError(.invalid, "is not a list of scopes", path: "scopes")
            }
            scopes.append(scope)
        }
    }

    /// Creates the record of a result.
    init(_ result: StoredResult, scopes: [PurgeScope], isNamed: Bool = false) {
        (key, tenant) = (result.key, result.tenant)
        metadata = result.metadata
        metadata.info = nil
        (expiresAt, storedAt, rule) = (result.expiresAt, result.storedAt, result.rule)
        (fence, since) = (result.fence, result.since)
        self.isNamed = isNamed
        self.scopes = scopes
    }

    /// Returns faces as a text: for each the position, the size and the confidence.
    private static func text(of faces: [DetectedFace]) -> String {
        let texts = faces.map { face -> String in
            let place = face.place
            return "\(place.x) \(place.y) \(place.width) \(place.height) \(face.confidence)"
        }
        return texts.joined(separator: ",")
    }

    /// Parses the text of faces.
    /// - Throws: ``JSONError`` for another text.
    private static func faces(_ text: String) throws(JSONError) -> [DetectedFace] {
        var faces: [DetectedFace] = []
        for face in text.split(separator: ",") {
            let parts = face.split(separator: " ")
            let sides = parts.prefix(4).compactMap { Int($0) }
            guard parts.count == 5, sides.count == 4, let confidence = Double(parts[4]) else {
                throw JSONError(.invalid, "is not a list of faces", path: "faces")
            }
            let place = PixelRect(x: sides[0], y: sides[1], width: sides[2], height: sides[3])
            faces.append(DetectedFace(place, confidence: confidence))
        }
        return faces
    }

    /// True if the file is the one that was stored: its length and its SHA-256 are those of the metadata.
    func describes(_ body: [UInt8]) -> Bool {
        body.count == metadata.bytes && SHA256.hash(body).description == metadata.sha256
    }
}

/// The standing of a result that was written to the store: what the result cache in Redis knows of it.
public enum ResultStanding: Sendable {
    /// It is the newest result of its key, as far as Redis knows.
    case current
    /// It has been purged.
    case purged
    /// Redis has a newer result of the same key.
    case replaced(by: StoredResult)
}
