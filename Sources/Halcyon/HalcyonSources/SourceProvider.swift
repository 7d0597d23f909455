import HalcyonModel

/// Gives the bytes of one kind of source, and says how long they are good for.
///
/// All kinds are the same to caching, sizing, coalescing and events: providers load, and know of nothing else.
public protocol SourceProvider<Reference>: Sendable {
    /// What says which source is meant: a value that was checked when the job was taken.
    associatedtype Reference: Sendable

    /// The bytes as they are now.
    ///
    /// Called on the cooperative pool: what blocks is to be done elsewhere. A cancelled task ends the work soon.
    /// - Throws: ``Failure``; `CancellationError` when the task is cancelled; anything else is told as `provider_error`.
    func load(_ reference: Reference) async throws -> LoadedSource

    /// The bytes, unless they are those that are known. By default the question is not asked, and they are loaded.
    ///
    /// - Parameter known: what ``LoadedSource/validators`` said of the bytes that the caller has.
    /// - Throws: as ``load(_:)``.
    func load(_ reference: Reference, unlike known: Validators) async throws -> SourceAnswer
}

extension SourceProvider {
    /// Loads them.
    public func load(_ reference: Reference, unlike known: Validators) async throws -> SourceAnswer {
        .loaded(try await load(reference))
    }
}

/// A provider of the host program's own. Jobs name it as a scheme, `"gallery:42"`, or with parameters,
/// `{"gallery": {"id": 42}}`.
///
/// ```swift
/// struct Gallery: CustomSourceProvider {
///     let name = "gallery"
///
///     func load(_ reference: String) async throws -> LoadedSource {
///         LoadedSource(body: try await archive.picture(reference), lifetime: .seconds(3600))
///     }
/// }
/// ```
public protocol CustomSourceProvider: SourceProvider where Reference == String {
    /// What jobs call it: 1 to 64 of `a` to `z`, `0` to `9`, `+`, `-` and `.`, a letter first; no scheme of Halcyon's own.
    var name: String { get }

    /// What the source is known by in keys: one line, the same for references to the same bytes and for no others. It is
    /// made of the reference alone, when the job is taken, and on any machine.
    ///
    /// - Parameter reference: what follows `name:`, or the parameters as compact JSON, its members in the order of their names.
    /// - Throws: ``Failure`` `invalid_job`, with what was expected, for a reference that names no source.
    func cacheKey(for reference: String) throws(Failure) -> String
}

extension CustomSourceProvider {
    /// The reference itself: takes any that is not empty and has no control characters.
    public func cacheKey(for reference: String) throws(Failure) -> String { reference }
}
