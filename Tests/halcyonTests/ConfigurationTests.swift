import Testing

/// Settings that depend on each other or are secret.
@Suite struct ConfigurationTests {
    @Test func masksS3Secrets() async throws {
        let run = try await Executable.run(
            ["config"],
            environment: [
                "HALCYON_SOURCES_S3_ACCESSKEY": "somebody", "HALCYON_SOURCES_S3_SECRETKEY": "hidden-1",
                "HALCYON_SOURCES_S3_SESSIONTOKEN": "hidden-2",
            ]
        ).expect(0)
        #expect(run.output.contains("somebody") && run.output.contains("****"))
        #expect(!run.output.contains("hidden"))
    }

    @Test(arguments: ["redis.url=foo", "redis.url=redis+sentinel://127.0.0.1"])
    func reportsTheSameErrorsAsAWorker(setting: String) async throws {
        let refused = try await Executable.run(["config", "--set", setting]).expect(2)
        let worker = try await Executable.run(["worker", "--set", setting]).expect(2)
        #expect(refused.errors.hasPrefix("halcyon: redis.url: ") && refused.errors == worker.errors)
        #expect(refused.output.isEmpty)
    }

    @Test(arguments: [
        (["SCOPES_shop": ""], "gateway.scopes.shop: expected submit, read or admin, found none"),
        (["SCOPES_shop": "read,write"], "gateway.scopes.shop: expected some of "),
        (["KEYS_twin": "0123456789abcdef"], "has the secret of gateway.keys."),
        (["SCOPES_other": "read"], "gateway.scopes.other: there is no gateway.keys.other"),
    ])
    func rejectsInvalidGatewayKeysAndScopes(more: [String: String], words: String) async throws {
        var variables = ["HALCYON_GATEWAY_KEYS_shop": "0123456789abcdef"]
        for (name, value) in more { variables["HALCYON_GATEWAY_\(name)"] = value }
        for command in ["config", "gateway"] {
            let refused = try await Executable.run([command], environment: variables).expect(2)
            #expect(refused.errors.contains(words) && refused.output.isEmpty)
        }
    }

    @Test func limitsUploadsPerHostByDefault() async throws {
        let lines = try await Executable.run(["config"]).expect(0).lines
        for (name, value) in [
            ("Concurrency", "128"), ("HostConcurrency", "16"), ("HostQueue", "128"), ("HostFailures", "5"),
            ("HostWait", "5s"),
        ] {
            let line = lines.first { $0.hasPrefix("delivery.put\(name) ") }
            let words = try #require(line).split(separator: " ")
            #expect(words[1] == value, "\(name)")
        }
    }

    @Test func fallsBackToAWSVariables() async throws {
        let variables = [
            "AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "hidden-1", "AWS_SESSION_TOKEN": "hidden-2",
            "AWS_REGION": "eu-north-1", "AWS_DEFAULT_REGION": "eu-south-1", "AWS_ENDPOINT_URL": "http://other",
            "AWS_ENDPOINT_URL_S3": "http://store:9000",
        ]
        let lines = try await Executable.run(["config"], environment: variables).expect(0).lines
        func line(_ name: String, _ lines: [String]) -> String {
            lines.first { $0.hasPrefix("sources.s3.\(name) ") } ?? ""
        }
        for (name, value, origin) in [
            ("accessKey", "somebody", "AWS_ACCESS_KEY_ID"), ("secretKey", "****", "AWS_SECRET_ACCESS_KEY"),
            ("sessionToken", "****", "AWS_SESSION_TOKEN"), ("region", "eu-north-1", "AWS_REGION"),
            ("endpoint", "http://store:9000", "AWS_ENDPOINT_URL_S3"),
        ] {
            #expect(line(name, lines).contains(value) && line(name, lines).hasSuffix("(\(origin))"), "\(lines)")
        }
        #expect(!lines.joined().contains("hidden"))
        // The second names, if the first are empty.
        let seconds = variables.merging(["AWS_REGION": "", "AWS_ENDPOINT_URL_S3": ""]) { $1 }
        let others = try await Executable.run(["config"], environment: seconds).expect(0).lines
        #expect(line("region", others).hasSuffix("eu-south-1  (AWS_DEFAULT_REGION)"))
        #expect(line("endpoint", others).hasSuffix("http://other  (AWS_ENDPOINT_URL)"))
    }

    /// A session token is valid only with the key it was issued for.
    @Test func doesNotMixCredentialsOfTwoOrigins() async throws {
        let run = try await Executable.run(
            ["config"],
            environment: [
                "AWS_ACCESS_KEY_ID": "theirs", "AWS_SECRET_ACCESS_KEY": "hidden-1", "AWS_SESSION_TOKEN": "hidden-2",
                "HALCYON_SOURCES_S3_ACCESSKEY": "ours", "HALCYON_SOURCES_S3_SECRETKEY": "hidden-3",
            ]
        ).expect(0)
        func line(_ name: String) -> String? { run.lines.first { $0.hasPrefix("\(name) ") } }
        #expect(line("sources.s3.accessKey")?.contains("ours") == true)
        // The store of results has none of its own.
        #expect(line("results.s3.accessKey")?.hasSuffix("theirs  (AWS_ACCESS_KEY_ID)") == true)
        #expect(run.lines.contains { $0.hasPrefix("sources.s3.sessionToken ") && $0.hasSuffix("-  (default)") })
        for (variable, words) in [
            ("AWS_ACCESS_KEY_ID", "found sources.s3.accessKey (AWS_ACCESS_KEY_ID)"),
            ("AWS_ENDPOINT_URL", "sources.s3.endpoint: expected an http or https URL such as"),
        ] {
            let wrong = try await Executable.run(["config"], environment: [variable: "x:y"]).expect(2)
            #expect(wrong.errors.contains(words) && wrong.errors.contains(variable))
        }
    }

    @Test(
        arguments: [
            ("sources.s3.accessKey=a", "accessKey and secretKey require each other"),
            ("sources.s3.sessionToken=a", "sessionToken requires both"),
            ("sources.s3.endpoint=store:9000", "sources.s3.endpoint: expected an http or https URL"),
            ("sources.s3.endpoint=http://a@store/", "without user, query and fragment"),
            ("sources.s3.region=a/b", "sources.s3.region: expected a region"),
            ("sources.s3.style=host", "sources.s3.style: expected one of auto, path, virtual"),
            ("results.store=/var/lib/results", "results.store: expected file:///absolute/path or s3://bucket/prefix"),
            ("results.store=file:///a/../b", "results.store: expected file:///absolute/path"),
            ("results.store=s3://bucket/a?b", "results.store: expected file:///absolute/path"),
            ("results.store.publicURL=ftp://a", "results.store.publicURL: expected an http or https URL"),
            ("results.store.publicURL=https://u@a/", "without a user, a query and a fragment"),
            ("results.store.publicURL=https://a", "results.store.publicURL: needs results.store"),
            ("results.store.names={width}.{format}", "results.store.names: needs results.store"),
            ("results.store.names=../{width}", "results.store.names: expected a relative path such as {source.path}/"),
            ("results.store.names={heigth}", "results.store.names: expected a relative path such as {source.path}/"),
            ("sources.fallback=cat.png", "sources.fallback: expected a source such as https://"),
            ("gateway.redirectsToStore=true", "gateway.redirectsToStore: needs results.store"),
            ("results.store.readTimeout=0", "results.store.readTimeout: expected a duration"),
            ("results.store.queueBytes=0", "results.store.queueBytes: expected a byte size"),
            ("sources.deny=127.0.0.0/88", "sources.deny: expected a list, each an address (192.0.2.1,"),
            ("sources.deny=good.test,,10.0.0.0/8", "sources.deny: expected a list, each an address"),
            (
                "sources.allow=[127.0.0.1]",
                "a CIDR range (10.0.0.0/8, fd00::/8) or a host (img.example.org, *.example.org)"
            ),
            (
                "sources.credentials.shop=secret",
                "sources.credentials.shop: expected an origin with a user and a password"
            ),
            ("sources.credentials.shop=https://u:secret@e.org/a", "such as https://user:password@img.example.org"),
            ("webhooks.allow=http://hooks.example.org", "webhooks.allow: expected a list, each a host"),
            ("sources.fileRoots=images", "sources.fileRoots: expected a list, each an absolute path without .."),
            ("sources.fileRoots=/srv/../etc", "sources.fileRoots: expected a list, each an absolute path without .."),
            ("sources.video.timeout=0", "sources.video.timeout: expected a duration"),
            ("sources.origin.concurrency=0", "sources.origin.concurrency: expected a whole number from 1 to 10000"),
            ("sources.origin.rate=-1", "sources.origin.rate: expected a number from 0"),
            ("sources.heuristicFraction=2", "sources.heuristicFraction: expected a number from 0"),
            ("sources.diskCache=kept", "sources.diskCache: expected an absolute path"),
            ("sources.negativeTTL.notFound=2d", "sources.negativeTTL.notFound: expected a duration"),
            ("kafka.offsetMetadata=64KiB", "kafka.offsetMetadata: expected a byte size"),
            ("delivery=twice", "delivery: expected one of at-least-once, exactly-once"),
            ("delivery.linger=2s", "delivery.linger: expected a duration"),
            ("delivery.batch=0", "delivery.batch: expected a whole number from 1 to 50000"),
            ("delivery.putConcurrency=0", "delivery.putConcurrency: expected a whole number from 1 to 10000"),
            ("delivery.putHostConcurrency=0", "delivery.putHostConcurrency: expected a whole number from 1 to 10000"),
            ("delivery.putHostQueue=-1", "delivery.putHostQueue: expected a whole number from 0 to 100000"),
            ("delivery.putHostFailures=0", "delivery.putHostFailures: expected a whole number from 1 to 1000"),
            ("delivery.putHostWait=11m", "delivery.putHostWait: expected a duration such as"),
            ("worker.memoryLimit=half", "worker.memoryLimit: expected a byte size"),
            ("worker.staticMember=true", "worker.staticMember: requires a name; set worker.instance"),
            ("events.progressInterval=50ms", "events.progressInterval: expected at least 100ms, or 0"),
            ("events.progressInterval=2h", "events.progressInterval: expected a duration"),
            ("worker.rebalanceTimeout=-1s", "worker.rebalanceTimeout: expected a duration"),
            ("leases.duration=0s", "leases.duration: expected a duration"),
            ("leases.fallbackTimeout=-1s", "leases.fallbackTimeout: expected a duration"),
            ("worker.fetchesWithoutLeases=0", "worker.fetchesWithoutLeases: expected a whole number"),
            ("lanes.low=0", "lanes.low: expected a whole number"),
            ("sources.handOverBytes=-1", "sources.handOverBytes: expected a byte size"),
            ("sources.identity=example.org", "sources.identity: expected a list, each HOST?NAME&NAME"),
            ("sources.redisBudget=-1", "sources.redisBudget: expected auto, or a byte size"),
            ("sources.maximumResumes=x", "sources.maximumResumes: expected a whole number"),
            ("worker.heartbeatInterval=0", "worker.heartbeatInterval: expected a duration"),
            ("gateway.sendTimeout=1m", "gateway.sendTimeout: expected a duration"),
            ("gateway.maximumWait=1m", "gateway.maximumWait: expected a duration"),
            ("gateway.rate=0", "gateway.rate: expected a whole number"),
            ("gateway.maximumClients=0", "gateway.maximumClients: expected a whole number"),
            ("gateway.streams=0", "gateway.streams: expected a whole number"),
            ("gateway.connectionsPerAddress=-1", "gateway.connectionsPerAddress: expected a whole number from 0 to"),
            ("gateway.clientStreams=0", "gateway.clientStreams: expected a whole number"),
            ("gateway.partitionInterval=0", "gateway.partitionInterval: expected a duration"),
            ("gateway.slowClientTimeout=0", "gateway.slowClientTimeout: expected a duration"),
            ("gateway.bodyBytes=1", "gateway.bodyBytes: expected a byte size"),
            ("gateway.deadLetterPageSize=0", "gateway.deadLetterPageSize: expected a whole number"),
            ("gateway.deadLetterPageBytes=1", "gateway.deadLetterPageBytes: expected a byte size"),
            ("gateway.deadLetterTimeout=1m", "gateway.deadLetterTimeout: expected a duration"),
            ("gateway.overviewInterval=0", "gateway.overviewInterval: expected a duration"),
            ("gateway.overviewTimeout=1m", "gateway.overviewTimeout: expected a duration"),
            (
                "gateway.cacheTags=etag",
                "gateway.cacheTags: expected a list, each one of cache-tag, surrogate-key, xkey"
            ),
            ("gateway.cacheTagBytes=100", "gateway.cacheTagBytes: expected a byte size"),
            ("gateway.cacheTagBytes=17KiB", "gateway.cacheTagBytes: expected a byte size"),
            ("gateway.formats=xcf", "gateway.formats: expected a list, each one of"),
        ] as [(String, String)])
    func rejectsInvalidSettings(setting: String, message: String) async throws {
        let run = try await Executable.run(["config", "--set", setting]).expect(2)
        #expect(run.errors.contains(message) && !run.errors.contains("secret@"), "\(run.errors)")
    }

    @Test func validatesRetrySettings() async throws {
        let lines = try await Executable.run(["config"]).expect(0).lines
        func value(_ name: String) -> String? {
            lines.first { $0.hasPrefix("retry.\(name) ") }?.dropFirst("retry.\(name)".count).split(separator: " ").first
                .map(String.init)
        }
        #expect(value("attempts") == "5" && value("baseDelay") == "500ms" && value("maximumInProcessDelay") == "2s")
        #expect(value("budget") == "30m" && value("delays") == "10s,1m,10m")
        for (variable, text, words) in [
            ("ATTEMPTS", "0", "retry.attempts"), ("BASE_DELAY", "0", "retry.baseDelay"),
            ("MAXIMUM_IN_PROCESS_DELAY", "2m", "retry.maximumInProcessDelay"),
            ("BUDGET", "2d", "retry.budget"), ("DELAYS", "1s,2h", "retry.delays"),
            ("DELAYS", "1m,10s", "retry.delays: expected ascending delays"),
            ("DELAYS", "10s,10s", "retry.delays: expected ascending delays"),
        ] {
            let wrong = try await Executable.run(["config"], environment: ["HALCYON_RETRY_\(variable)": text]).expect(2)
            #expect(wrong.errors.contains(words), "\(wrong.errors)")
        }
        // Topics are named after their delays.
        let own = try await Executable.run(
            ["topics", "create", "--help"], environment: ["HALCYON_RETRY_DELAYS": "5s"]
        ).expect(0)
        #expect(own.output.contains("retry.delays"))
    }

    @Test func validatesSchedulesAndLimitsOfTenants() async throws {
        let good = [
            "HALCYON_TENANTS_WEIGHTS": "acme=4,test=0.5", "HALCYON_TENANTS_MAXIMUM_IN_FLIGHT": "acme=100,*=500",
            "HALCYON_TENANTS_RATE": "*=0.5", "HALCYON_SCHEDULE_DELAYS": "1s,30m",
        ]
        let run = try await Executable.run(["config"], environment: good).expect(0)
        for text in ["acme=4.0,test=0.5", "*=500,acme=100", "*=0.5", "1s,30m"] {
            #expect(run.output.contains(text), "\(text)")
        }
        for (variable, text, words) in [
            ("TENANTS_WEIGHTS", "acme", "tenants.weights"), ("TENANTS_WEIGHTS", "*=2", "tenants.weights"),
            ("TENANTS_WEIGHTS", "a=1,a=2", "tenants.weights"), ("TENANTS_WEIGHTS", "a=0", "tenants.weights"),
            ("TENANTS_MAXIMUM_IN_FLIGHT", "a=0", "tenants.maximumInFlight"),
            ("TENANTS_MAXIMUM_IN_FLIGHT", "a b=1.5", "tenants.maximumInFlight"),
            ("TENANTS_RATE", "a=0", "tenants.rate"), ("TENANTS_BURST", "0", "tenants.burst"),
            ("WORKER_OVERFLOW_AFTER", "2 h", "worker.overflowAfter"), ("TENANTS_RATE", "a/b=1", "tenants.rate"),
            ("SCHEDULE_DELAYS", "", "schedule.delays"), ("SCHEDULE_DELAYS", "10s,1s", "expected ascending delays"),
            ("SCHEDULE_DELAYS", "1h", "shorter than worker.cancellationRetention"),
            ("SCHEDULE_MAXIMUM_DELAY", "366d", "schedule.maximumDelay"),
            ("REFRESH_RATE", "0", "refresh.rate"), ("REFRESH_MAXIMUM_JOBS", "-1", "refresh.maximumJobs"),
            ("REFRESH_MAXIMUM_JOBS_PER_TENANT", "0", "refresh.maximumJobsPerTenant"),
            ("REFRESH_LEAD", "2h", "refresh.lead"), ("REFRESH_MINIMUM_INTERVAL", "0", "refresh.minimumInterval"),
            ("WORKER_OVERFLOW", "perhaps", "worker.overflow"), ("TENANTS_METRICS", "1001", "tenants.metrics"),
        ] {
            let wrong = try await Executable.run(["config"], environment: ["HALCYON_\(variable)": text]).expect(2)
            #expect(wrong.errors.contains(words), "\(variable): \(wrong.errors)")
        }
    }

    @Test func validatesArchiveCopies() async throws {
        let name = "HALCYON_SOURCES_ARCHIVE_"
        let good = ["\(name)MINIMUM_PIXELS": "8000000", "\(name)REDIS_BYTES": "16MiB", "\(name)RETENTION": "30d"]
        let run = try await Executable.run(["config"], environment: good).expect(0)
        for text in ["8000000", "3000000", "16MiB", "30d"] { #expect(run.output.contains(text), "\(text)") }
        for (wrong, words) in [
            (["\(name)MINIMUM_PIXELS": "3000000"], "sources.archive.pixels: expected less than"),
            (
                ["\(name)MINIMUM_PIXELS": "90000000", "\(name)PIXELS": "70000000"],
                "sources.archive.pixels: expected at most images.maximumOutputPixels, 64000000"
            ),
            (["\(name)MINIMUM_PIXELS": "-1"], "sources.archive.minimumPixels"),
            (["\(name)MINIMUM_PIXELS": "1000000001"], "sources.archive.minimumPixels"),
            (["\(name)PIXELS": "9999"], "sources.archive.pixels"),
            (["\(name)REDIS_BYTES": "1GiB"], "sources.archive.redisBytes"),
            (["\(name)RETENTION": "soon"], "sources.archive.retention"),
        ] {
            let run = try await Executable.run(["config"], environment: wrong).expect(2)
            #expect(run.errors.contains(words), "\(wrong): \(run.errors)")
        }
    }

    @Test func validatesWebhookSettings() async throws {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        let good = [
            "HALCYON_WEBHOOKS_URL_shop": "https://shop.example.org/",
            "HALCYON_WEBHOOKS_SECRET_shop": "\(secret) \(secret)",
            "HALCYON_WEBHOOKS_SECRET": secret, "HALCYON_WEBHOOKS_URL_blog": "http://blog:8080/",
            "HALCYON_WEBHOOKS_ALLOW": "*.example.org", "HALCYON_WEBHOOKS_TYPES": "ready,started",
        ]
        let run = try await Executable.run(["config"], environment: good).expect(0)
        #expect(run.output.contains("https://shop.example.org/") && !run.output.contains("whsec_"))
        func value(_ name: String) -> String? {
            run.lines.first { $0.hasPrefix("\(name) ") }?.dropFirst(name.count).split(separator: " ").first.map(
                String.init)
        }
        for (name, text) in [
            ("notifications.redis", "true"), ("notifications.maximumAge", "1h"), ("webhooks.types", "ready,started"),
            ("webhooks.timeout", "15s"), ("webhooks.maximumResponseBytes", "64KiB"), ("webhooks.concurrency", "8"),
            ("webhooks.queue", "256"), ("webhooks.failures", "5"), ("webhooks.attempts", "40"),
            ("webhooks.baseDelay", "500ms"), ("webhooks.maximumInProcessDelay", "2s"), ("webhooks.budget", "1d"),
            ("webhooks.delays", "10s,1m,10m,1h"), ("webhooks.secret", "****"), ("webhooks.secrets.shop", "****"),
        ] { #expect(value(name) == text, "\(name)") }
        for (variable, text, words) in [
            ("URL_shop", "ftp://h/", "webhooks.urls.shop: expected an http or https URL"),
            ("URL_shop", "http://u:hidden@h/", "webhooks.urls.shop: expected an http or https URL without a user"),
            ("SECRET", "hidden", "webhooks.secret: expected whsec_"),
            ("SECRET", "", "webhooks.urls.blog: needs a secret"),
            ("SECRET_shop", "hidden", "webhooks.secrets.shop: expected whsec_"),
            ("SECRET_nobody", secret, "there is no webhooks.urls.nobody"), ("TYPES", "done", "webhooks.types"),
            ("TIMEOUT", "0", "webhooks.timeout"), ("MAXIMUMRESPONSEBYTES", "-1", "webhooks.maximumResponseBytes"),
            ("CONCURRENCY", "0", "webhooks.concurrency"), ("QUEUE", "-1", "webhooks.queue"),
            ("FAILURES", "0", "webhooks.failures"), ("ATTEMPTS", "0", "webhooks.attempts"),
            ("BASE_DELAY", "0", "webhooks.baseDelay"),
            ("MAXIMUM_IN_PROCESS_DELAY", "2m", "webhooks.maximumInProcessDelay"),
            ("BUDGET", "31d", "webhooks.budget"), ("DELAYS", "1m,10s", "webhooks.delays: expected ascending delays"),
            ("DELAYS", "", "webhooks.delays: expected at least one delay"),
        ] {
            let wrong = try await Executable.run(
                ["config"], environment: good.merging(["HALCYON_WEBHOOKS_\(variable)": text]) { $1 }
            ).expect(2)
            #expect(wrong.errors.contains(words) && !wrong.errors.contains("hidden"), "\(wrong.errors)")
        }
        let unsigned = try await Executable.run(["config"], environment: ["HALCYON_WEBHOOKS_ALLOW": "h"]).expect(2)
        #expect(unsigned.errors.contains("webhooks.allow: webhook URLs of jobs need a secret"))
        let name = try await Executable.run(["config", "--set", "webhooks.urls.a/b=http://h/"]).expect(2)
        #expect(name.errors.contains("webhooks.urls: expected a name of letters"))
        let age = try await Executable.run(["config", "--set", "notifications.maximumAge=0"]).expect(2)
        #expect(age.errors.contains("notifications.maximumAge: expected a duration"))
    }

    @Test func validatesAndMasksPurgeHooks() async throws {
        let fastly = #"{"template":"fastly","service":"hidden-1","token":"hidden-2"}"#
        let run = try await Executable.run(
            ["config"],
            environment: [
                "HALCYON_PURGE_HOOKS_fastly": fastly, "HALCYON_WEBHOOKS_TYPES": "purged",
                "HALCYON_GATEWAY_CACHE_TAGS": "cache-tag,surrogate-key,xkey",
            ]
        ).expect(0)
        #expect(run.lines.contains { $0.hasPrefix("purge.hooks.fastly ") && $0.contains("****") })
        #expect(run.lines.contains { $0.hasPrefix("webhooks.types ") && $0.contains("purged") })
        #expect(run.output.contains("cache-tag,surrogate-key,xkey") && !run.output.contains("hidden"))
        let plain = try await Executable.run(["config"]).expect(0)
        #expect(plain.lines.contains { $0.hasPrefix("gateway.cacheTags ") && $0.hasSuffix("-  (default)") })
        #expect(plain.lines.contains { $0.hasPrefix("gateway.cacheTagBytes ") && $0.contains(" 8KiB ") })
        for (text, words) in [
            ("hidden", "purge.hooks.cdn: expected a JSON object"),
            (#"{"template":"fastly","token":"hidden"}"#, "purge.hooks.cdn: service: is missing"),
            (#"{"url":"http://hidden:x@h/"}"#, "purge.hooks.cdn: url: expected an http or https URL"),
        ] {
            for command in ["config", "worker"] {
                let wrong = try await Executable.run(
                    [command], environment: ["HALCYON_PURGE_HOOKS_cdn": text]
                ).expect(2)
                #expect(wrong.errors.contains(words) && !wrong.errors.contains("hidden"), "\(wrong.errors)")
            }
        }
        let name = try await Executable.run(["config", "--set", "purge.hooks.a/b=\(fastly)"]).expect(2)
        #expect(name.errors.contains("purge.hooks: expected a name of letters") && !name.errors.contains("hidden"))
    }

    @Test func devRejectsExactlyOnceDelivery() async throws {
        let run = try await Executable.run(["dev"], environment: ["HALCYON_DELIVERY": "exactly-once"]).expect(2)
        #expect(run.errors.contains("delivery: the embedded broker has no transactions"), "\(run.errors)")
    }
}
