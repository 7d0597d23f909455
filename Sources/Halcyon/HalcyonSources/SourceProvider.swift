import HalcyonModel

/// Gives the bytes of one kind of source, and says how long they are good for.
///
/// All kinds are the same to caching, sizing, coalescing and events: providers fetch, and know of nothing else.
public protocol SourceProvider<Reference>: Sendable {
    /// What says which source is meant: a value that was checked when the job was taken.
    associatedtype Reference: Sendable

    /// Fetches the bytes.
    ///
    /// Called on the cooperative pool: blocking work belongs elsewhere. A cancelled task ends the work soon.
    /// - Parameter known: ``LoadedSource/validators`` of the bytes that the caller has; nil if it has none. A provider
    ///   that cannot tell cheaply whether they have changed ignores them.
    /// - Throws: ``Failure``; `CancellationError` when the task is cancelled; any other error becomes `provider_error`.
    func fetch(_ reference: Reference, ifNoneMatch known: Validators?) async throws -> FetchResponse
}

/// A provider of the host program's own. Jobs name it as a scheme, `"gallery:42"`, or with parameters,
/// `{"gallery": {"id": 42}}`.
///
/// ```swift
/// struct Gallery: CustomSourceProvider {
///     let name = "gallery"
///
///     func fetch(_ reference: String, ifNoneMatch known: Validators?) async throws -> FetchResponse {
///         .loaded(LoadedSource(body: try await archive.picture(reference), lifetime: .seconds(3600)))
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
