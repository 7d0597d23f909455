import HalcyonCoding
import HalcyonModel
import Kafka
import Redis

/// Registers and deletes presets: changes Redis and notifies workers and gateways.
public struct PresetService: Sendable {
    private let store: PresetStore
    private let control: ControlPublisher
    private let isFixed: @Sendable (String) -> Bool

    /// Creates a service.
    /// - Parameters:
    ///   - store: The store of registered presets.
    ///   - control: The publisher of control messages.
    ///   - isFixed: A function that returns true if the settings define a preset. Such presets are not changed.
    public init(_ store: PresetStore, _ control: ControlPublisher, isFixed: @escaping @Sendable (String) -> Bool) {
        self.store = store
        self.control = control
        self.isFixed = isFixed
    }

    /// Registers a preset and notifies workers and gateways, even if it is unchanged, because an earlier notification
    /// may have failed.
    /// - Parameters:
    ///   - preset: The preset.
    ///   - reader: The decoder that checks the preset.
    /// - Returns: The outcome with the version.
    /// - Throws: ``InvalidPresetError``, ``PresetError``, `RedisError`; ``PresetNotBroadcast`` if the preset was stored,
    ///   but nobody was notified.
    public func put(_ preset: Preset, checkedBy reader: JobDecoder) async throws -> PresetStore.Outcome {
        guard !isFixed(preset.name) else { throw PresetError.isInSettings(preset.name) }
        try reader.check(preset)
        let outcome = try await store.put(preset)
        try await broadcast(preset.name)
        return outcome
    }

    /// Deletes a preset and notifies workers and gateways.
    /// - Parameter name: The name of the preset.
    /// - Returns: False if there is no such preset.
    /// - Throws: ``PresetError``, `RedisError`; ``PresetNotBroadcast`` if the preset was deleted, but nobody was
    ///   notified.
    public func delete(_ name: String) async throws -> Bool {
        guard !isFixed(name) else { throw PresetError.isInSettings(name) }
        let isDeleted = try await store.delete(name)
        try await broadcast(name)
        return isDeleted
    }

    private func broadcast(_ name: String) async throws(PresetNotBroadcast) {
        do throws(KafkaError) {
            try await control.publish(.preset(name))
        } catch {
            throw PresetNotBroadcast(name: name, reason: error)
        }
    }
}

/// The error of a change of a preset in Redis that workers and gateways could not be notified of. They notice it within
/// a minute.
public struct PresetNotBroadcast: Error, CustomStringConvertible {
    /// The name of the preset.
    public let name: String
    /// The error that prevented the notification.
    public let reason: KafkaError

    /// The error, with a remedy.
    public var description: String {
        "preset \(name) was changed in Redis, but workers and gateways were not notified; repeat the command, or wait a "
            + "minute: \(reason)"
    }
}
