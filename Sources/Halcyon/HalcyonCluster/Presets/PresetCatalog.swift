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
    private struct State {
        var registered: [String: Preset] = [:]
        /// The last load that has started.
        var running: Task<RedisError?, Never>?
        /// A load that has not started yet.
        var next: Task<RedisError?, Never>?
        /// The earliest start of the next load.
        var earliest = ContinuousClock.now
        var refresher: Task<Void, Never>?
    }

    /// The presets of the settings, by name. They take precedence.
    private let fixed: [String: Preset]
    private let store: PresetStore
    private let log: Log
    private let state = Lock(State())

    /// The minimum time between the starts of two loads. It bounds the cost of jobs with unknown presets.
    private static let interval = Duration.milliseconds(200)

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
    public subscript(name: String) -> Preset? { fixed[name] ?? state.withLock { $0.registered[name] } }

    /// All presets, ordered by name.
    public var all: [Preset] {
        fixed.merging(state.withLock(\.registered)) { fixed, _ in fixed }.values.sorted { $0.name < $1.name }
    }

    /// Returns true if the settings define a preset.
    public func isFixed(_ name: String) -> Bool { fixed[name] != nil }

    /// Starts loading the presets now and once a minute. ``close()`` ends this.
    public func start() {
        let refresher = Task { [self] in
            while !Task.isCancelled {
                let error = await nextLoad().value
                await Task.sleepUnlessCancelled(for: .seconds(error == nil ? 60 : 5))
            }
        }
        state.withLock { $0.refresher = refresher }
    }

    /// Loads the presets in the background, because they have changed.
    public func invalidate() { _ = nextLoad() }

    /// Loads the presets. Concurrent calls share one load, which starts after them.
    /// - Throws: `RedisError`.
    public func reload() async throws(RedisError) {
        if let error = await nextLoad().value { throw error }
    }

    /// Ends the loads.
    public func close() async {
        let (refresher, loads) = state.withLock { ($0.refresher, [$0.next, $0.running]) }
        refresher?.cancel()
        for load in loads { load?.cancel() }
        await refresher?.value
        for load in loads { _ = await load?.value }
    }

    /// Returns a load that starts in the future.
    private func nextLoad() -> Task<RedisError?, Never> {
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

    private func load() async -> RedisError? {
        do throws(RedisError) {
            let entries = try await store.entries()
            let known = state.withLock(\.registered)
            if entries.isEmpty, !known.isEmpty {
                log.warning("Redis has lost the registered presets; storing them again", ["presets": known.count])
                try await store.restore(Array(known.values))
                return nil
            }
            let registered = presets(in: entries, known)
            state.withLock { $0.registered = registered }
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

extension JobDecoder {
    /// Returns a decoder that accepts the presets of a catalog.
    /// - Parameter presets: The catalog.
    public func withPresets(_ presets: PresetCatalog) -> JobDecoder {
        var reader = self
        reader.findPreset = { presets[$0] }
        return reader
    }
}
