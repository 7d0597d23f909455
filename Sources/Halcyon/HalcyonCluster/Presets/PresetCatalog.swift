import Concurrency
import HalcyonCoding
import HalcyonModel
import Redis
import Telemetry

/// The presets that a worker or gateway knows: those of its settings, and copies of those registered in Redis.
///
/// Copies are replaced when a control message announces a change, every ten seconds, and when a job names a preset that
/// is unknown or too old. While Redis is unavailable the copies remain. Presets that Redis has lost are stored there
/// again, at the latest when the process ends: they lack even the version that deleted ones leave.
public final class PresetCatalog: Sendable {
    /// The time that the last load may take.
    private static let closeTimeout = Duration.seconds(2)

    /// The presets of the settings, by name. They take precedence.
    private let fixed: [String: Preset]
    private let store: PresetStore
    private let log: Log
    private let registered = Lock<[String: Preset]>([:])
    private let restorationTime: Duration
    /// The time since which neither Redis nor this process has a registered preset; nil if one of them has.
    private let emptySince = Lock<ContinuousClock.Instant?>(nil)
    /// The time of the last load that failed.
    private let failedAt = Lock<ContinuousClock.Instant?>(nil)
    private let refresher = Refresher()

    /// Creates a catalog without registered presets.
    /// - Parameters:
    ///   - fixed: The presets of the settings.
    ///   - store: The store of registered presets.
    ///   - restorationTime: The time within which other processes store presets again that Redis has lost.
    ///   - log: The log of invalid presets.
    public init(_ fixed: [Preset], _ store: PresetStore, restorationTime: Duration = .seconds(30), log: Log) {
        self.fixed = Dictionary(fixed.map { ($0.name, $0) }) { $1 }
        self.store = store
        self.restorationTime = restorationTime
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

    /// True if an unknown preset may be one that Redis has lost, and that other processes are about to store again: Redis
    /// has none at all, and this process has not known that for long, or it was unavailable a short time ago.
    public var mayLackLostPresets: Bool {
        [emptySince, failedAt].contains { time in
            time.withLock { $0.map { $0.duration(to: .now) < restorationTime } ?? false }
        }
    }

    /// Starts loading the presets now and every ten seconds. ``close()`` ends this.
    public func start() { refresher.start(load) }

    /// Loads the presets in the background, because they have changed.
    public func invalidate() { refresher.invalidate(load) }

    /// Loads the presets. Concurrent calls share one load, which starts after them.
    /// - Throws: `RedisError`.
    public func reload() async throws(RedisError) { try await refresher.refresh(load) }

    /// Ends the periodic loads, and loads the presets once more. Otherwise a restart of all processes, soon after Redis
    /// has lost its data, would lose the presets.
    public func close() async {
        await refresher.close()
        guard registered.withLock({ !$0.isEmpty }) else { return }
        await withTimeout(Self.closeTimeout) { [self] in
            if let error = await load() {
                log.warning("could not check whether Redis still has the registered presets", ["error": "\(error)"])
            }
        }
    }

    private func load() async -> RedisError? {
        do throws(RedisError) {
            let entries = try await store.entries()
            let known = registered.withLock { $0 }
            let lost = known.filter { entries[$0.key] == nil }
            if !lost.isEmpty {
                log.warning("Redis has lost registered presets; storing them again", ["presets": lost.count])
                try await store.restore(Array(lost.values))
            }
            let presets = presets(in: entries, known).merging(lost) { stored, _ in stored }
            registered.withLock { $0 = presets }
            emptySince.withLock { $0 = entries.isEmpty && lost.isEmpty ? $0 ?? .now : nil }
            return nil
        } catch {
            failedAt.withLock { $0 = .now }
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

/// Loads a copy of data in Redis: every ten seconds, and when it may have changed.
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

    /// Starts loading now and every ten seconds, until ``close()``.
    func start(_ load: @escaping Load) {
        let repetition = Task { [self] in
            while !Task.isCancelled {
                let error = await next(load).value
                await Task.sleepUnlessCancelled(for: .seconds(error == nil ? 10 : 5))
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
