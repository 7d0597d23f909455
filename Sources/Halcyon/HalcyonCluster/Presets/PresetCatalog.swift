import Concurrency
import HalcyonCoding
import HalcyonModel
import Redis
import Telemetry

/// The presets that a worker or gateway knows: those of its settings, and copies of those registered in Redis.
///
/// Copies are replaced when a control message announces a change, once a minute, and when a job names a preset that is
/// unknown or too old. While Redis is unavailable the copies remain. If Redis has lost all presets, they are stored
/// there again.
public final class PresetCatalog: Sendable {
    /// The presets of the settings, by name. They take precedence.
    private let fixed: [String: Preset]
    private let store: PresetStore
    private let log: Log
    private let registered = Lock<[String: Preset]>([:])
    private let refresher = Refresher()

    /// Creates a catalog without registered presets.
    /// - Parameters:
    ///   - fixed: The presets of the settings.
    ///   - store: The store of registered presets.
    ///   - log: The log of invalid presets.
    public init(_ fixed: [Preset], _ store: PresetStore, log: Log) {
        self.fixed = Dictionary(fixed.map { ($0.name, $0) }) { $1 }
        self.store = store
        self.log = log
    }

    /// Returns the preset with a name; nil if it is unknown.
    public subscript(name: String) -> Preset? { fixed[name] ?? registered.withLock { $0[name] } }

    /// All presets, ordered by name.
    public var all: [Preset] {
        fixed.merging(registered.withLock { $0 }) { fixed, _ in fixed }.values.sorted { $0.name < $1.name }
    }

    /// Returns true if the settings define a preset.
    public func isFixed(_ name: String) -> Bool { fixed[name] != nil }

    /// Starts loading the presets now and once a minute. ``close()`` ends this.
    public func start() { refresher.start(load) }

    /// Loads the presets in the background, because they have changed.
    public func invalidate() { refresher.invalidate(load) }

    /// Loads the presets. Concurrent calls share one load, which starts after them.
    /// - Throws: `RedisError`.
    public func reload() async throws(RedisError) { try await refresher.refresh(load) }

    /// Ends the loads.
    public func close() async { await refresher.close() }

    private func load() async -> RedisError? {
        do throws(RedisError) {
            let entries = try await store.entries()
            let known = registered.withLock { $0 }
            if entries.isEmpty, !known.isEmpty {
                log.warning("Redis has lost the registered presets; storing them again", ["presets": known.count])
                try await store.restore(Array(known.values))
                return nil
            }
            let presets = presets(in: entries, known)
            registered.withLock { $0 = presets }
            return nil
        } catch {
            return error
        }
    }

    private func presets(in entries: [String: PresetStore.Entry], _ known: [String: Preset]) -> [String: Preset] {
        var presets: [String: Preset] = [:]
        for (name, entry) in entries {
            guard let contents = entry.contents else { continue }
            if let preset = known[name], preset.version == entry.version {
                presets[name] = preset
                continue
            }
            do throws(InvalidPresetError) {
                presets[name] = try Preset(name, json: contents)
                presets[name]?.version = entry.version
            } catch {
                log.warning("ignored an invalid preset in Redis", ["preset": name, "reason": error.reason])
            }
        }
        return presets
    }
}

/// Loads a copy of data in Redis: once a minute, and when it may have changed.
final class Refresher: Sendable {
    private struct State {
        /// The last load that has started.
        var running: Task<RedisError?, Never>?
        /// A load that has not started yet.
        var next: Task<RedisError?, Never>?
        /// The earliest start of the next load.
        var earliest = ContinuousClock.now
        var repetition: Task<Void, Never>?
    }

    typealias Load = @Sendable () async -> RedisError?

    /// The minimum time between the starts of two loads. It bounds the cost of changes, and of jobs with unknown
    /// presets.
    private static let interval = Duration.milliseconds(200)

    private let state = Lock(State())

    /// Starts loading now and once a minute, until ``close()``.
    func start(_ load: @escaping Load) {
        let repetition = Task { [self] in
            while !Task.isCancelled {
                let error = await next(load).value
                await Task.sleepUnlessCancelled(for: .seconds(error == nil ? 60 : 5))
            }
        }
        state.withLock { $0.repetition = repetition }
    }

    /// Loads in the background.
    func invalidate(_ load: @escaping Load) { _ = next(load) }

    /// Loads. Concurrent calls share one load, which starts after them.
    /// - Throws: `RedisError`.
    func refresh(_ load: @escaping Load) async throws(RedisError) {
        if let error = await next(load).value { throw error }
    }

    /// Ends the loads.
    func close() async {
        let (repetition, loads) = state.withLock { ($0.repetition, [$0.next, $0.running]) }
        repetition?.cancel()
        for load in loads { load?.cancel() }
        await repetition?.value
        for load in loads { _ = await load?.value }
    }

    /// Returns a load that starts in the future.
    private func next(_ load: @escaping Load) -> Task<RedisError?, Never> {
        state.withLock { state in
            if let next = state.next { return next }
            let (previous, earliest) = (state.running, state.earliest)
            let next = Task { [self] in
                _ = await previous?.value
                await Task.sleepUnlessCancelled(until: earliest)
                self.state.withLock { state in
                    (state.running, state.next) = (state.next, nil)
                    state.earliest = .now + Self.interval
                }
                return await load()
            }
            state.next = next
            return next
        }
    }
}

extension JobDecoder {
    /// Returns a decoder that accepts the presets of a catalog.
    /// - Parameter presets: The catalog.
    public func withPresets(_ presets: PresetCatalog) -> JobDecoder {
        var reader = self
        reader.findPreset = { presets[$0] }
        return reader
    }
}
