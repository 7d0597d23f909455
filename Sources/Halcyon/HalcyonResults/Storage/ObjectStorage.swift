/// Objects by name, in a folder or in an S3 bucket.
///
/// A name is a path of segments separated by `/`, each of letters, digits, `-`, `_`, `.`, `=` and `~`, and none of them
/// `.` or `..` (``ObjectName``). Names are relative to the folder or to the prefix in the bucket.
protocol ObjectStorage: Sendable {
    /// Reads an object; nil if there is none.
    /// - Parameter limit: The maximum size of its body in bytes.
    /// - Throws: ``StorageError``.
    func read(_ name: String, upTo limit: Int) async throws(StorageError) -> StorageObject?

    /// Reads what is known about an object without its body; nil if there is none.
    /// - Throws: ``StorageError``.
    func head(_ name: String) async throws(StorageError) -> StorageHead?

    /// Writes an object and replaces the one of the same name. Readers see the old object, the new one or none, and
    /// never a part.
    /// - Parameter isDurable: True if the object has to survive a crash of the machine as soon as this returns. False if
    ///   it may then be missing, or have an invalid record.
    /// - Throws: ``StorageError``.
    func write(_ object: StorageObject, as name: String, isDurable: Bool) async throws(StorageError)

    /// Makes an object durable that has been written by this or another process.
    /// - Throws: ``StorageError``, also if the object is missing.
    func synchronize(_ name: String) async throws(StorageError)

    /// Removes objects. Missing objects are not an error.
    /// - Throws: ``StorageError``. Some of the objects may have been removed.
    func remove(_ names: [String]) async throws(StorageError)

    /// Lists the objects whose names begin with a prefix, in the order of their bytes.
    /// - Parameter last: The name after which to continue; nil for the beginning.
    /// - Returns: Up to ``pageSize`` objects. Fewer mean that there are no more.
    /// - Throws: ``StorageError``.
    func list(_ prefix: String, after last: String?) async throws(StorageError) -> [StorageEntry]

    /// The free space; nil if the storage has no limit.
    /// - Throws: ``StorageError``.
    func space() async throws(StorageError) -> StorageSpace?

    /// True if Halcyon deletes expired objects, and false if the storage does that by rules of its own.
    var isSwept: Bool { get }

    /// Ends all operations and releases connections and threads.
    func close() async
}

/// The maximum number of objects in a page of a list: that of S3.
let pageSize = 1000

/// An object of a storage.
struct StorageObject: Hashable, Sendable {
    /// The file, which other programs may read.
    var body: [UInt8]
    /// The media type of the file.
    var mediaType: String
    /// What Halcyon knows about the file: JSON, stored beside it.
    var record: [UInt8]
    /// The expiry in seconds since 1970; nil for none.
    var expiresAt: Double?
    /// True if caches that are shared by several users must not store the file.
    var isPrivate = false
}

/// An object without its body.
struct StorageHead: Hashable, Sendable {
    let record: [UInt8]
    /// The size of the body in bytes.
    let bytes: Int
}

/// The space of a file system, in bytes.
struct StorageSpace: Hashable, Sendable {
    let free: Int
    let total: Int
}

/// An object in a list.
struct StorageEntry: Hashable, Sendable {
    let name: String
    /// The size of the file in bytes.
    let bytes: Int
    /// The last use, or where the storage does not record uses the time of writing, in seconds since 1970.
    let usedAt: Double
    /// The expiry in seconds since 1970; nil if the storage does not record it.
    let expiresAt: Double?
}

/// An error of a storage.
public struct StorageError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of errors.
    public enum Kind: String, CaseIterable, Sendable {
        /// The storage does not respond, or reports a temporary error.
        case unavailable
        /// There is no space left.
        case full
        /// The credentials or the permissions of the folder do not allow the operation.
        case forbidden
        /// The bucket or the folder does not exist, or the storage does not support the operation.
        case misconfigured
        /// The object exceeds a limit.
        case tooLarge = "too_large"
        /// The task was cancelled, or the storage is closed.
        case cancelled
    }

    /// The kind of the error.
    public let kind: Kind
    /// The operation, the place and the reason. It contains no credentials.
    public let description: String
    /// The time after which the storage is tried again, if it was skipped after repeated failures; nil if it was tried.
    public let retryAfter: Duration?

    init(_ kind: Kind, _ description: String, retryAfter: Duration? = nil) {
        self.kind = kind
        self.description = description
        self.retryAfter = retryAfter
    }
}

extension StorageObject {
    /// The object of a name that says everything: a tombstone or an index entry.
    static func marker(expiresAt: Double? = nil) -> StorageObject {
        StorageObject(
            body: [], mediaType: "application/octet-stream", record: Array("{}".utf8), expiresAt: expiresAt)
    }
}
