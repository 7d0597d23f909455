import Glibc
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import ProgramSettings

extension ProgramOptions {
    /// Settings of presets.
    static let presetSettings: [Setting<ProgramOptions>] = [
        Setting("presets.only", \.presetsOnly, .bool)
            .help("Reject jobs without a preset, including those of /v1/render. Set it for workers and gateways.")
    ]

    /// The presets by name.
    static let presetMap = SettingMap<ProgramOptions>(
        "presets", \.presetTexts, variables: "PRESET_", isSecret: false
    )
    .help(
        """
        Presets by name: JSON such as {"job": {"width": 320}, "overridable": ["width"]}, or the path of a file with \
        it. They take precedence over registered ones.
        """)
}

extension Configuration {
    /// Parses the presets of the settings.
    /// - Parameters:
    ///   - texts: The JSON of each preset, or the path of its file, by name.
    ///   - reader: The decoder that checks their jobs.
    /// - Throws: ``ConfigurationError`` that names the setting.
    static func presets(_ texts: [String: String], checkedBy reader: JobDecoder) throws(ConfigurationError) -> [Preset]
    {
        var presets: [Preset] = []
        for (name, text) in texts.sorted(by: { $0.key < $1.key }) {
            do throws(InvalidPresetError) {
                let isJSON = text.drop { $0.isWhitespace }.first == "{"
                let preset = try Preset(name, json: isJSON ? Array(text.utf8) : try file(text, of: name))
                try reader.check(preset)
                presets.append(preset)
            } catch {
                throw ConfigurationError("presets.\(name): \(error.reason)")
            }
        }
        return presets
    }

    /// Reads the file of a preset.
    private static func file(_ path: String, of name: String) throws(InvalidPresetError) -> [UInt8] {
        guard let file = fopen(path, "re") else {
            let reason = String(cString: strerror(errno))
            throw InvalidPresetError(name, "expected JSON or the path of a file; cannot open \(path): \(reason)")
        }
        defer { fclose(file) }
        // One byte more than is allowed, so that a larger file is rejected.
        var bytes = [UInt8](repeating: 0, count: Preset.maximumBytes + 1)
        let count = fread(&bytes, 1, bytes.count, file)
        guard ferror(file) == 0 else {
            throw InvalidPresetError(name, "cannot read \(path): \(String(cString: strerror(errno)))")
        }
        return Array(bytes.prefix(count))
    }

    /// Returns a decoder that also accepts the presets registered in Redis.
    /// - Throws: the errors of ``withRedis(_:)``.
    func readerWithRegisteredPresets() async throws -> JobDecoder {
        try await jobReader.withPresets(catalog())
    }

    /// Returns the presets of the settings and those in Redis.
    /// - Throws: the errors of ``withRedis(_:)``.
    func catalog() async throws -> PresetCatalog {
        try await withRedis { redis in
            let catalog = PresetCatalog(presets, PresetStore(redis, topics: topics), log: .silent)
            try await catalog.reload()
            return catalog
        }
    }
}
