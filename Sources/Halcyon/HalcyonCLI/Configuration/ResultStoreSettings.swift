import Formats
import HalcyonModel
import HalcyonResults
import HalcyonSources
import ProgramSettings

extension ProgramOptions {
    /// Settings of the persistent result store.
    static let resultStoreSettings: [Setting<ProgramOptions>] = [
        Setting("results.store", \.resultStoreLocation, .optional(.resultStoreLocation))
            .help(
                """
                Persistent store of results: a folder (file:///var/lib/halcyon/results), local or shared, or an S3 \
                bucket (s3://bucket/prefix). None by default. Set it for workers, gateways and purges alike.
                """),
        Setting("results.store.publicURL", \.resultStore.publicURL, .optional(.publicURL))
            .help(
                """
                URL under which clients find the objects of the store, such as https://images.example.org. Events then \
                name the URL of each result.
                """),
        Setting("results.store.names", \.resultStore.names, .optional(.fileNames))
            .help(
                """
                Names of files in the folder files of the store, such as {source.path}/{width}x{height}.{format}. A hash \
                of the key is inserted unless the template contains {key}. None by default: files have the names of \
                their keys.
                """),
        Setting("results.store.maximumBytes", \.resultStore.budget, .zeroAsNil(.byteSize(in: 0...(1 << 50))))
            .help(
                """
                Maximum size of a folder, with LRU eviction; 0 for all but a tenth of its file system.
                """),
        Setting("results.store.queueBytes", \.resultStore.queueBytes, .byteSize(in: 1024...(1 << 40)))
            .help("Maximum size of results that wait to be written; jobs whose results do not fit wait."),
        Setting(
            "results.store.readTimeout", \.resultStore.readTimeout,
            .duration(in: .milliseconds(10) ... .seconds(600))
        )
        .help("Time after which a read is given up, and the result is rendered."),
        Setting(
            "results.store.writeTimeout", \.resultStore.writeTimeout,
            .duration(in: .milliseconds(10) ... .seconds(3600))
        )
        .help("Time after which an attempt to write is given up. There are three attempts."),
        Setting(
            "results.store.sweepInterval", \.resultStore.sweepInterval, .duration(in: .seconds(1) ... .days(1))
        )
        .help("Interval at which one worker of the cluster deletes expired results, and purged ones written late."),
        Setting(
            "results.store.refreshInterval", \.resultStore.refreshInterval,
            .duration(in: .milliseconds(100) ... .seconds(600))
        )
        .help("Interval at which purges by others are read from the store, besides hearing of them from Kafka."),
    ]
}

extension Configuration {
    /// Creates the options of the result store; nil if there is none.
    /// - Throws: ``ConfigurationError`` that names the setting.
    static func resultStore(_ settings: Settings<ProgramOptions>) throws(ConfigurationError) -> ResultStoreOptions? {
        var options = settings.options.resultStore
        if settings.options.gateway.redirectsToStore, options.publicURL == nil {
            throw ConfigurationError("gateway.redirectsToStore: needs results.store and results.store.publicURL")
        }
        guard let location = settings.options.resultStoreLocation else {
            if options.publicURL != nil { throw ConfigurationError("results.store.publicURL: needs results.store") }
            if options.names != nil { throw ConfigurationError("results.store.names: needs results.store") }
            return nil
        }
        options.location = location
        options.s3 = try S3Options(settings, .results)
        options.userAgent = "Halcyon/\(Version.number)"
        return options
    }
}

extension ValueKind<String> {
    /// A value kind for a URL to which names are appended.
    fileprivate static var publicURL: Self {
        ValueKind("an http or https URL without a user, a query and a fragment") { text in
            // Any other text is rejected.
            guard let url = try? WebURL(text), !url.hasUser, !text.contains("?"), !text.contains("#") else {
                return nil
            }
            return String(text.reversed().drop { $0 == "/" }.reversed())
        }
    }
}

extension ValueKind<FileNameTemplate> {
    /// A value kind for a template of names.
    fileprivate static var fileNames: Self {
        ValueKind(FileNameTemplate.expectation) {
            FileNameTemplate($0)
        } write: {
            $0.text
        }
    }
}

extension ValueKind<ResultStoreLocation> {
    /// A value kind for the place of a result store.
    fileprivate static var resultStoreLocation: Self {
        ValueKind("file:///absolute/path or s3://bucket/prefix, without .., spaces and the characters ?#%\\") {
            ResultStoreLocation($0)
        }
    }
}
