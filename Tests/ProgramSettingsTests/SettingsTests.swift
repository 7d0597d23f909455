import Formats
import Glibc
import ProgramSettings
import Testing

@Suite struct SettingsTests {
    struct Options: Equatable, Sendable {
        var brokers = [HostPort(host: "localhost", port: 9092)]
        var limit = 1 << 30
        var concurrency = 4
        var url = "redis://localhost"
        var key = ""
        var ttl = Duration.seconds(86400)
        var properties: [String: String] = [:]
    }

    static let concurrency = Setting("worker.concurrency", \Options.concurrency, .integer(in: 1...64))
    static let schema = SettingsSchema(
        prefix: "T_", defaults: Options(),
        settings: [
            Setting("kafka.brokers", \.brokers, .list(of: .hostPort)).help("Where Kafka is."),
            Setting("worker.memoryLimit", \.limit, .byteSize()),
            concurrency,
            Setting("redis.url", \.url, .text),
            Setting("http.apiKey", \.key, .text, isSecret: true),
            Setting("cache.defaultTTL", \.ttl, .duration()),
        ],
        maps: [SettingMap("kafka.properties", \.properties, variables: "KAFKA_PROPERTY_").help("For librdkafka.")],
        ignoring: ["T_CONFIG"])

    func load(
        flags: [(name: String, value: String)] = [], environment: [String: String] = [:], yaml: String? = nil
    ) throws -> Settings<Options> {
        try Settings(
            Self.schema, flags: flags.map { SettingFlag(name: $0.name, flag: "--\($0.name)", value: $0.value) },
            environment: environment,
            file: try yaml.map { try SettingsFile(name: "settings.yaml", bytes: Array($0.utf8)) })
    }

    func errorMessage(
        flags: [(name: String, value: String)] = [], environment: [String: String] = [:], yaml: String? = nil
    ) -> String {
        do {
            _ = try load(flags: flags, environment: environment, yaml: yaml)
            return ""
        } catch { return "\(error)" }
    }

    @Test func prefersFlagsThenVariablesThenTheFile() throws {
        let yaml = "worker:\n  concurrency: 1\n  memoryLimit: 1MiB\nredis.url: redis://file\n"
        let environment = ["T_WORKER_CONCURRENCY": "2", "T_WORKER_MEMORY_LIMIT": "2MiB"]
        let settings = try load(flags: [("worker.concurrency", "3")], environment: environment, yaml: yaml)
        #expect(settings.options.concurrency == 3)
        #expect(settings.options.limit == 2 << 20)
        #expect(settings.options.url == "redis://file")
        #expect(settings.options.ttl == .seconds(86400))
        #expect(settings.origin(of: \.concurrency) == .flag("--worker.concurrency"))
        #expect(settings.origin(of: \.limit) == .variable("T_WORKER_MEMORY_LIMIT"))
        #expect(settings.origin(of: \.url) == .file("settings.yaml", line: 4))
        #expect(settings.origin(of: \.ttl) == .builtIn)
    }

    @Test func schemaDescribesItsSettings() {
        #expect(Self.schema.settings[0].explanation == "Where Kafka is.")
        #expect(Self.schema.settings[2].expectation == "a whole number from 1 to 64")
        #expect(Self.schema.maps[0].explanation == "For librdkafka.")
    }

    @Test func fallsBackToVariablesOfOtherPrograms() throws {
        let schema = SettingsSchema(
            prefix: "T_", defaults: Options(),
            settings: [
                Setting(
                    "worker.concurrency", \.concurrency, .integer(in: 1...64),
                    fallbacks: ["OTHER_FIRST", "OTHER_SECOND"]),
                Setting("redis.url", \.url, .text, fallbacks: ["OTHER_URL"]),
                Setting("http.apiKey", \.key, .text, isSecret: true, fallbacks: ["OTHER_KEY"]),
            ],
            together: [[\.url, \.key]])
        let others = ["OTHER_URL": "redis://other", "OTHER_KEY": "k", "OTHER_FIRST": "", "OTHER_SECOND": "7"]
        let settings = try Settings(schema, environment: others)
        #expect(
            settings.options.url == "redis://other" && settings.options.key == "k" && settings.options.concurrency == 7)
        #expect(settings.origin(of: \.url) == .variable("OTHER_URL"))
        #expect(settings.origin(of: \.concurrency) == .variable("OTHER_SECOND"))
        #expect(settings.listing.contains { $0.name == "http.apiKey" && $0.value == "****" })
        #expect(schema.settings[0].fallbacks == ["OTHER_FIRST", "OTHER_SECOND"])
        #expect(Self.concurrency.fallbacks == [])

        // Setting one setting of a group, even in the file, disables the fallbacks of the whole group.
        let file = try SettingsFile(name: "settings.yaml", bytes: Array("redis.url: redis://file\n".utf8))
        let own = try Settings(schema, environment: others, file: file)
        #expect(own.options.url == "redis://file" && own.options.key.isEmpty && own.options.concurrency == 7)
        #expect(own.origin(of: \.key) == .builtIn)

        #expect { try Settings(schema, environment: ["OTHER_FIRST": "many"]) } throws: {
            "\($0)".contains("OTHER_FIRST") && "\($0)".contains("worker.concurrency: expected a whole number")
        }
    }

    @Test func acceptsVariablesWithAndWithoutUnderscores() throws {
        #expect(Self.schema.variable(for: "kafka.brokers") == "T_KAFKA_BROKERS")
        #expect(Self.schema.variable(for: "worker.memoryLimit") == "T_WORKER_MEMORY_LIMIT")
        #expect(Self.schema.variable(for: "cache.defaultTTL") == "T_CACHE_DEFAULT_TTL")
        for name in ["T_WORKER_MEMORY_LIMIT", "T_WORKER_MEMORYLIMIT", "T_WORKERMEMORYLIMIT"] {
            #expect(try load(environment: [name: "1KiB"]).options.limit == 1024)
        }
    }

    @Test func readsListsFromEveryLayer() throws {
        let expected = [HostPort(host: "a", port: 1), HostPort(host: "b", port: 2)]
        #expect(try load(yaml: "kafka:\n  brokers: [a:1, b:2]").options.brokers == expected)
        #expect(try load(yaml: "kafka:\n  brokers:\n    - a:1\n    - 'b:2'").options.brokers == expected)
        #expect(try load(yaml: "kafka.brokers: a:1,b:2").options.brokers == expected)
        #expect(try load(environment: ["T_KAFKA_BROKERS": "a:1, b:2"]).options.brokers == expected)
        #expect(try load(flags: [("kafka.brokers", "a:1,b:2")]).options.brokers == expected)
    }

    @Test func mergesMapEntriesOfAllLayers() throws {
        let settings = try load(
            flags: [("kafka.properties.debug", "flag")],
            environment: [
                "T_KAFKA_PROPERTY_security.protocol": "ssl", "T_KAFKA_PROPERTY_debug": "variable",
                "T_KAFKA_PROPERTY_max_in_flight": "5",
            ],
            yaml: "kafka:\n  properties:\n    debug: file\n    client.id: me\n    ssl:\n      key.password: secret1")
        #expect(
            settings.options.properties == [
                "debug": "flag", "security.protocol": "ssl", "max_in_flight": "5", "client.id": "me",
                "ssl.key.password": "secret1",
            ])
    }

    @Test func emptySectionsSetNothing() throws {
        for yaml in [
            "", "# only a comment", "---", "~", "{}", "kafka:", "kafka:\n  properties:\nworker: {}", "redis:\n  url:",
        ] {
            #expect(try load(yaml: yaml).options.url == "redis://localhost")
        }
        #expect(try load(yaml: "redis.url: ''").options.url == "")
        #expect(try load(yaml: "redis.url: 'null'").options.url == "null")
    }

    @Test func rejectsUnknownNames() {
        #expect(
            errorMessage(yaml: "worker:\n  concurrency: 2\nkafka:\n  broker: a:1")
                == "settings.yaml:4: unknown setting kafka.broker; did you mean kafka.brokers?")
        #expect(errorMessage(yaml: "kafka: a:1") == "settings.yaml:1: unknown setting kafka")
        #expect(errorMessage(yaml: "nonsense:") == "settings.yaml:1: unknown setting nonsense")
        #expect(
            errorMessage(environment: ["T_KAFKA_BROKRES": "a:1"])
                == "T_KAFKA_BROKRES: no such setting; did you mean T_KAFKA_BROKERS?")
        #expect(errorMessage(environment: ["T_KAFKA_PROPERTY_": "x"]) == "T_KAFKA_PROPERTY_: no such setting")
        #expect(
            errorMessage(environment: ["T_kafka_brokers": "a:1"]).hasPrefix("T_kafka_brokers: no such setting"))
        #expect(errorMessage(environment: ["T_CONFIG": "x", "OTHER": "y", "TX": "z"]) == "")
        #expect(errorMessage(flags: [("worker.concurency", "1")]).hasSuffix("did you mean worker.concurrency?"))
    }

    @Test func rejectsInvalidValues() {
        #expect(
            errorMessage(yaml: "\nworker.concurrency: many")
                == "settings.yaml:2: worker.concurrency: expected a whole number from 1 to 64, found \"many\"")
        #expect(
            errorMessage(environment: ["T_WORKER_CONCURRENCY": "65"])
                == "T_WORKER_CONCURRENCY: worker.concurrency: expected a whole number from 1 to 64, found \"65\"")
        #expect(
            errorMessage(flags: [("cache.defaultTTL", "1 day")])
                == "--cache.defaultTTL: cache.defaultTTL: expected a duration such as 500ms, 30s, 5m or 1d, found \"1 day\""
        )
        #expect(errorMessage(yaml: "redis.url: [a, b]") == "settings.yaml:1: redis.url: expected a text, found [a, b]")
        #expect(errorMessage(yaml: "http.apiKey: [abc]") == "settings.yaml:1: http.apiKey: expected a text")
        #expect(
            errorMessage(yaml: "kafka.properties:\n  a: [b]")
                == "settings.yaml:2: kafka.properties.a: expected a string, found a list")
    }

    @Test func rejectsTwoVariablesForOneSetting() {
        #expect(
            errorMessage(environment: ["T_WORKER_MEMORY_LIMIT": "1", "T_WORKER_MEMORYLIMIT": "2"])
                == "T_WORKER_MEMORY_LIMIT: sets worker.memoryLimit, which T_WORKER_MEMORYLIMIT sets too")
    }

    @Test func masksSecretsInTheListing() throws {
        let settings = try load(
            environment: [
                "T_HTTP_API_KEY": "hunter2", "T_REDIS_URL": "redis://me:pa:s/s@host:6379/0",
                "T_KAFKA_PROPERTY_sasl.password": "hunter3", "T_KAFKA_PROPERTY_client.id": "me",
            ])
        let listing = settings.listing
        #expect(
            listing.map(\.name) == Self.schema.settings.map(\.name) + [
                "kafka.properties.client.id", "kafka.properties.sasl.password",
            ])
        #expect(
            listing.map(\.value) == [
                "localhost:9092", "1GiB", "4", "redis://me:****@host:6379/0", "****", "1d", "me", "****",
            ])
        #expect(listing[0].origin == .builtIn)
        #expect(listing[3].origin == .variable("T_REDIS_URL"))
        #expect(try load().listing[4].value == "")
    }

    @Test(
        arguments: [
            ("redis://:secret@h/0", "redis://:****@h/0"),
            ("redis://u:s@h1 redis://u:t@h2", "redis://u:****@h1 redis://u:****@h2"),
            ("redis://u@h:1", "redis://u@h:1"), ("redis://h:1/0", "redis://h:1/0"), ("a:b@c", "a:b@c"), ("", ""),
            ("https://u:p@ss@h/x", "https://u:****@h/x"),
            ("redis+sentinel://a,b/s?sentinel-password=hunter2", "redis+sentinel://a,b/s?sentinel-password=****"),
            (
                "redis+sentinel://u:p@a:1/s?sentinel-user=eve&sentinel-password=p%40&timeout=5s",
                "redis+sentinel://u:****@a:1/s?sentinel-user=eve&sentinel-password=****&timeout=5s"
            ),
            ("redis+sentinel://a:1/s?sentinel-password=b@c", "redis+sentinel://a:****"),
            ("redis://u:p?password=x@h", "redis://u:****"),
            ("https://h/?a=1&API_Key=k?k&X-Token=t&sig=s", "https://h/?a=1&API_Key=****&X-Token=****&sig=****"),
            ("https://h/key=1?b=token", "https://h/key=1?b=token"),
        ] as [(String, String)]) func masksPasswordsInURLs(url: String, shown: String) throws
    {
        #expect(try load(environment: ["T_REDIS_URL": url]).listing[3].value == shown)
    }

    @Test func readsFilesAndRejectsUnreadableOnes() throws {
        #expect(throws: SettingsError.self) { try SettingsFile(path: "/no/such/file.yaml") }
        #expect(throws: SettingsError.self) { try SettingsFile(path: "/") }
        #expect(throws: SettingsError.self) { try SettingsFile(path: "/dev/zero") }
        var path = Array("/tmp/settings-test-XXXXXX".utf8CString)
        let descriptor = mkstemp(&path)
        defer { unlink(path) }
        let text = "worker.concurrency: 9\n"
        #expect(write(descriptor, text, text.utf8.count) == text.utf8.count)
        close(descriptor)
        let file = try SettingsFile(path: String(decoding: path.dropLast().map(UInt8.init), as: UTF8.self))
        #expect(try Settings(Self.schema, file: file).options.concurrency == 9)
    }
}
