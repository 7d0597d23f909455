// swift-tools-version: 6.2
import Foundation
import PackageDescription

// Every library below is Debian's and sits behind one door; no outside Swift package is needed.
// Targets are listed in the order of the architecture: each may import only what stands above it.

/// A C library of the system, found through pkg-config, installed by `make deps`.
func systemLibrary(_ name: String, _ pkgConfig: String, apt: String) -> Target {
    .systemLibrary(name: name, path: "Sources/C/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

func module(
    _ name: String, _ path: String, _ dependencies: [Target.Dependency] = [], resources: [Resource]? = nil,
    linker: [LinkerSetting] = []
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Sources/\(path)/\(name)", resources: resources,
        linkerSettings: linker)
}

/// TLS of hiredis is a library of its own, from 1.0 on; the shim looks for the same header.
let hiredisTLS: [LinkerSetting] =
    ["/usr/include", "/usr/local/include", "/opt/homebrew/include"]
        .contains { FileManager.default.fileExists(atPath: "\($0)/hiredis/hiredis_ssl.h") }
    ? [.linkedLibrary("hiredis_ssl"), .linkedLibrary("ssl"), .linkedLibrary("crypto")] : []

/// Tests mirror modules; what they share stands in `Tests/Support`.
func tests(of name: String, _ dependencies: [Target.Dependency] = [], resources: [Resource] = []) -> Target {
    .testTarget(name: "\(name)Tests", dependencies: [.byName(name: name)] + dependencies, resources: resources)
}

/// The fuzzer needs a sanitizer that everything else does without: `make fuzz` asks for it.
let fuzzing: [Target] =
    Context.environment["HALCYON_FUZZING"] == nil
    ? []
    : [
        .executableTarget(
            name: "JobFuzzer",
            dependencies: [
                "HostileFiles", "HalcyonImaging", "HalcyonModel", "HalcyonWire", "Digests", "Vips",
            ],
            path: "Fuzzing/JobFuzzer"),
        .executableTarget(name: "OffsetFuzzer", dependencies: ["HalcyonCluster"], path: "Fuzzing/OffsetFuzzer"),
    ]

let package = Package(
    name: "halcyon",
    // What the client needs of Apple's systems; the rest is for Linux, and knows no versions.
    platforms: [.macOS(.v15), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
    products: [
        .executable(name: "halcyon", targets: ["halcyon"]),
        .library(name: "HalcyonModel", targets: ["HalcyonModel"]),
        // For applications, also on Apple's platforms: docs/clients.md.
        .library(name: "HalcyonKit", targets: ["HalcyonKit"]),
        // For programs that add processors, sizers and providers of their own: docs/extending.md.
        .library(
            name: "HalcyonCommand",
            targets: ["HalcyonCommand", "HalcyonImaging", "HalcyonModel", "HalcyonSources", "Vips"]),
    ],
    targets: [
        // C: module maps and tiny shims, nothing else.
        systemLibrary("CVips", "vips", apt: "libvips-dev"),
        systemLibrary("CCurl", "libcurl", apt: "libcurl4-openssl-dev"),
        systemLibrary("CRdKafka", "rdkafka", apt: "librdkafka-dev"),
        systemLibrary("CHiredis", "hiredis", apt: "libhiredis-dev"),
        systemLibrary("CMicroHTTP", "libmicrohttpd", apt: "libmicrohttpd-dev"),
        systemLibrary("CYaml", "yaml-0.1", apt: "libyaml-dev"),
        systemLibrary("CCrypto", "libcrypto", apt: "libssl-dev"),
        .target(name: "CLinux", path: "Sources/C/CLinux"),
        .target(
            name: "CSimdJSON", path: "Sources/C/CSimdJSON", linkerSettings: [.linkedLibrary("simdjson")]),

        // Foundations: know nothing of images, queues or Halcyon.
        module("CivilTime", "Foundations"),
        module("Threads", "Foundations", ["CLinux"]),
        module("Processes", "Foundations", ["CLinux", "Threads"]),
        module("JSON", "Foundations", ["CSimdJSON", "Threads"]),
        module("PercentCoding", "Foundations"),
        module("HTTPFields", "Foundations"),
        module("Digests", "Foundations", ["CCrypto", "Threads"]),
        module("Values", "Foundations"),
        module("Settings", "Foundations", ["CYaml", "Values"]),
        module("Arguments", "Foundations", ["Values"]),
        module("Telemetry", "Foundations", ["CLinux", "CivilTime", "Processes", "Threads", "JSON"]),

        // Doors: one per library, handles owned, errors typed, async; know nothing of Halcyon.
        module("Vips", "Doors", ["CVips", "Threads"]),
        module("Curl", "Doors", ["CCurl", "HTTPFields", "Threads"]),
        module("Kafka", "Doors", ["CRdKafka", "CLinux", "Threads"]),
        module("Redis", "Doors", ["CHiredis", "PercentCoding", "Threads"], linker: hiredisTLS),
        module("HTTPServer", "Doors", ["CMicroHTTP", "CLinux", "HTTPFields", "PercentCoding", "Threads"]),

        // Halcyon: pure values first, I/O at the edges.
        module("HalcyonModel", "Halcyon", ["CivilTime", "HTTPFields", "PercentCoding"]),
        module(
            "HalcyonWire", "Halcyon", ["HalcyonModel", "CivilTime", "JSON", "Digests", "PercentCoding", "Values"]),
        module("HalcyonImaging", "Halcyon", ["HalcyonModel", "Vips", "Threads", "Digests"]),
        module(
            "HalcyonRendering", "Halcyon",
            ["HalcyonModel", "HalcyonImaging", "Vips", "Processes", "Threads", "CLinux"]),
        module("HalcyonBudget", "Halcyon", ["Redis", "Telemetry", "Threads"]),
        module("HalcyonLeases", "Halcyon", ["Redis", "Telemetry", "Threads"]),
        module(
            "HalcyonSources", "Halcyon",
            [
                "HalcyonModel", "HalcyonBudget", "HalcyonLeases", "CLinux", "CivilTime", "Curl", "Digests",
                "HTTPFields",
                "JSON", "PercentCoding", "Processes", "Redis", "Telemetry", "Threads", "Vips",
            ]),
        module(
            "HalcyonCluster", "Halcyon",
            [
                "HalcyonModel", "HalcyonWire", "HalcyonBudget", "HalcyonLeases", "CivilTime", "Digests", "JSON",
                "Kafka",
                "Redis",
                "Telemetry", "Threads", "Values",
            ]),
        module(
            "HalcyonNotify", "Halcyon",
            [
                "HalcyonModel", "HalcyonWire", "HalcyonSources", "HalcyonCluster", "CivilTime", "Curl", "Digests",
                "JSON", "Kafka", "Redis", "Telemetry", "Threads",
            ]),
        module(
            "HalcyonWorker", "Halcyon",
            [
                "HalcyonModel", "HalcyonWire", "HalcyonBudget", "HalcyonImaging", "HalcyonRendering", "HalcyonLeases",
                "HalcyonSources", "HalcyonCluster", "CivilTime", "HTTPFields", "Kafka", "Redis", "Telemetry", "Threads",
            ]),
        module("HalcyonProbes", "Halcyon", ["HTTPServer", "Telemetry"]),
        // What a workload needs: nothing but arithmetic.
        module("HalcyonPlan", "Halcyon"),
        module("HalcyonTraces", "Halcyon", ["HalcyonModel", "CivilTime", "Curl", "HTTPFields", "Telemetry"]),
        module(
            "HalcyonGateway", "Halcyon",
            [
                "HalcyonModel", "HalcyonWire", "HalcyonBudget", "HalcyonCluster", "HalcyonProbes", "HTTPServer",
                "CivilTime", "Digests", "JSON", "Kafka", "PercentCoding", "Redis", "Telemetry", "Threads",
            ],
            // Parts of the program: there is no folder to install beside it.
            resources: [
                .embedInCode("Documents/openapi.yaml"), .embedInCode("Documents/asyncapi.yaml"),
                .embedInCode("Dashboard/Page"),
            ]),
        // For applications: Foundation alone, and no module of the server's. It is not called Halcyon, because its
        // module and build folders would collide with those of the program where file systems ignore case.
        module("HalcyonKit", "Halcyon"),
        // For `halcyon dev --demo`; the demo script and tests read the others from the folder.
        .target(
            name: "SamplePhotographs", path: "Samples",
            exclude: ["README.md", "astronaut.jpg", "coffee.jpg", "hubble.jpg", "rocket.jpg"],
            resources: [.embedInCode("chelsea.jpg")]),
        .target(
            name: "HalcyonCommand",
            dependencies: [
                "HalcyonModel", "HalcyonWire", "HalcyonBudget", "HalcyonImaging", "HalcyonRendering", "HalcyonLeases",
                "HalcyonSources", "HalcyonCluster", "HalcyonNotify", "HalcyonWorker", "HalcyonProbes", "HalcyonTraces",
                "HalcyonGateway", "HalcyonPlan", "HTTPServer",
                "CivilTime", "Kafka", "Redis",
                "Curl", "Vips",
                "Telemetry", "Settings", "Arguments", "PercentCoding", "Values", "Processes", "Threads", "JSON",
                "Digests",
                "SamplePhotographs",
            ],
            path: "Sources/Halcyon/HalcyonCommand"),
        .executableTarget(name: "halcyon", dependencies: ["HalcyonCommand"], path: "Sources/Halcyon/halcyon"),

        // A program with extensions of its own, as docs/extending.md describes it.
        .executableTarget(
            name: "halcyon-extended",
            dependencies: ["HalcyonCommand", "HalcyonImaging", "HalcyonModel", "HalcyonSources", "Vips"],
            path: "Examples/Extended"),

        // A program on the client, as docs/clients.md has it.
        .executableTarget(
            name: "client-example", dependencies: ["HalcyonKit"], path: "Examples/Swift",
            // The strictest rule for imports that an application may have: this one is enough for everything.
            swiftSettings: [.enableUpcomingFeature("MemberImportVisibility")]),

        // Benchmarks: what the product costs beside the plainest C.
        .target(
            name: "PlainLoop", dependencies: ["CHiredis", "CRdKafka", "CVips"], path: "Benchmarks/PlainLoop"),
        .target(
            name: "Measuring",
            dependencies: [
                "HalcyonCluster", "JSON", "Kafka", "PlainLoop", "Processes", "Redis", "TestSupport", "Threads",
            ],
            path: "Benchmarks/Measuring"),
        .executableTarget(
            name: "RenderBenchmark",
            dependencies: [
                "Measuring", "HalcyonImaging", "HalcyonModel", "HalcyonRendering", "Processes", "Vips", "Threads",
            ],
            path: "Benchmarks/RenderBenchmark"),
        .executableTarget(
            name: "ChildBenchmark",
            dependencies: ["Measuring", "HalcyonImaging", "HalcyonModel", "HalcyonRendering", "Threads"],
            path: "Benchmarks/ChildBenchmark"),
        .executableTarget(
            name: "ClusterBenchmark", dependencies: ["HalcyonCluster", "Measuring", "TestSupport", "Vips"],
            path: "Benchmarks/ClusterBenchmark"),
        .executableTarget(
            name: "OriginBenchmark",
            dependencies: [
                "Measuring", "HalcyonCluster", "JSON", "Kafka", "Processes", "TestSupport", "Threads", "Vips",
            ],
            path: "Benchmarks/OriginBenchmark"),
        .executableTarget(
            name: "DeliveryBenchmark",
            dependencies: ["Measuring", "HalcyonCluster", "JSON", "Kafka", "Processes", "TestSupport", "Threads"],
            path: "Benchmarks/DeliveryBenchmark"),
        .executableTarget(
            name: "GapBenchmark",
            dependencies: ["Measuring", "HalcyonCluster", "JSON", "Kafka", "Processes", "TestSupport", "Threads"],
            path: "Benchmarks/GapBenchmark"),
        .executableTarget(
            name: "EventsBenchmark",
            dependencies: ["CLinux", "Measuring", "HalcyonCluster", "Kafka", "Processes", "TestSupport", "Threads"],
            path: "Benchmarks/EventsBenchmark"),
        .executableTarget(
            name: "GatewayBenchmark",
            dependencies: [
                "Curl", "HalcyonCluster", "HalcyonWire", "JSON", "Kafka", "Measuring", "Processes", "TestSupport",
                "Threads",
            ],
            path: "Benchmarks/GatewayBenchmark"),
        .executableTarget(
            name: "PlanBenchmark", dependencies: ["JSON", "Measuring", "TestSupport"],
            path: "Benchmarks/PlanBenchmark"),
        .executableTarget(
            name: "WireBenchmark", dependencies: ["HalcyonModel", "HalcyonWire"], path: "Benchmarks/WireBenchmark"),

        // Chaos: what workers are done, and whether they keep their promises.
        .target(
            name: "ChaosHarness",
            dependencies: [
                "HalcyonCluster", "HalcyonModel", "HostileFiles", "JSON", "Kafka", "Processes", "TestSupport",
                "Threads", "Vips",
            ],
            path: "Chaos/Harness"),
        .executableTarget(
            name: "Chaos", dependencies: ["Arguments", "ChaosHarness", "TestSupport", "Values"], path: "Chaos/Program"),

        // What tests share: real servers, started and stopped by process id.
        .executableTarget(
            name: "AddressRunner", dependencies: ["HalcyonModel", "HalcyonSources", "Processes", "Threads"],
            path: "Tests/AddressRunner"),
        .target(
            name: "TestSupport", dependencies: ["HTTPServer", "Kafka", "Processes", "Telemetry", "Threads"],
            path: "Tests/Support",
            exclude: ["conformance", "documents.py", "otlp_spans.py", "requirements.txt", "s3_server.py"]),
        .executableTarget(
            name: "ContactSheet", dependencies: ["HalcyonImaging", "HalcyonModel", "Vips"], path: "Tests/ContactSheet"),
        // Files that somebody may send, and a program that renders one of them under watch.
        .target(name: "HostileFiles", dependencies: ["HalcyonImaging", "HalcyonModel", "Vips"], path: "Tests/Hostile"),
        .executableTarget(
            name: "HostileRunner",
            dependencies: [
                "HostileFiles", "HalcyonImaging", "HalcyonModel", "HalcyonRendering", "HalcyonWire", "CVips", "Vips",
            ],
            path: "Tests/HostileRunner"),
        // A program whose extensions end it, or hold it up for ever.
        .executableTarget(
            name: "DeadlyHost",
            dependencies: ["HalcyonCommand", "HalcyonImaging", "HalcyonModel", "HalcyonSources", "Vips"],
            path: "Tests/DeadlyHost"),
        tests(of: "CivilTime"),
        tests(of: "Threads", ["TestSupport"]),
        tests(of: "Processes"),
        tests(of: "JSON"),
        tests(of: "Digests"),
        tests(of: "PercentCoding"),
        tests(of: "HTTPFields"),
        tests(of: "Values"),
        tests(of: "Settings", ["Values"]),
        tests(of: "Arguments", ["Processes"]),
        tests(of: "Telemetry", ["CivilTime", "JSON", "TestSupport", "Threads"]),
        tests(of: "Vips", ["TestSupport"]),
        tests(of: "Curl", ["HTTPFields", "TestSupport"]),
        tests(of: "Kafka", ["Processes", "TestSupport"]),
        tests(of: "Redis", ["TestSupport"]),
        tests(of: "HTTPServer", ["Processes", "TestSupport", "Threads"]),
        tests(of: "HalcyonModel", ["HTTPFields"], resources: [.copy("Vectors")]),
        tests(of: "HalcyonWire", ["HalcyonModel", "JSON", "Processes", "TestSupport"]),
        tests(
            of: "HalcyonImaging", ["Digests", "HostileFiles", "HostileRunner", "Processes", "TestSupport"],
            resources: [.copy("Processors/Goldens")]),
        tests(
            of: "HalcyonRendering",
            ["CLinux", "HalcyonImaging", "HalcyonModel", "Processes", "TestSupport", "Threads", "Vips"]),
        tests(of: "HalcyonBudget", ["Redis", "Telemetry", "TestSupport"]),
        tests(of: "HalcyonLeases", ["Redis", "Telemetry", "TestSupport", "Threads"]),
        tests(
            of: "HalcyonSources",
            [
                "AddressRunner", "Curl", "HTTPFields", "HalcyonLeases", "HalcyonModel", "Processes", "Redis",
                "Telemetry",
                "TestSupport", "Threads", "Vips",
            ]),
        tests(
            of: "HalcyonCluster",
            ["CivilTime", "HalcyonBudget", "HalcyonModel", "Kafka", "Redis", "Telemetry", "TestSupport", "Threads"]),
        tests(
            of: "HalcyonNotify",
            [
                "HalcyonCluster", "HalcyonModel", "HalcyonSources", "Kafka", "Processes", "Redis", "Telemetry",
                "TestSupport", "Threads",
            ]),
        tests(
            of: "HalcyonWorker",
            [
                "CLinux", "CivilTime", "DeadlyHost", "HalcyonCluster", "HalcyonImaging", "HalcyonModel",
                "HalcyonRendering",
                "HalcyonSources", "HalcyonTraces", "Kafka", "Processes", "Redis", "Telemetry", "TestSupport", "Threads",
                "Vips",
            ]),
        tests(of: "HalcyonPlan"),
        tests(of: "HalcyonProbes", ["Curl", "HTTPServer", "Telemetry", "TestSupport", "Threads"]),
        tests(
            of: "HalcyonGateway",
            [
                "CivilTime", "Curl", "Digests", "HTTPFields", "HTTPServer", "HalcyonCluster", "HalcyonModel",
                "HalcyonProbes", "HalcyonSources", "HalcyonTraces", "HalcyonWire", "HalcyonWorker", "JSON", "Kafka",
                "PercentCoding", "Processes", "Redis", "Telemetry", "TestSupport", "Threads",
            ]),
        tests(
            of: "HalcyonKit",
            ["client-example", "HalcyonModel", "HalcyonWire", "Processes", "TestSupport", "Threads"]),
        tests(of: "ChaosHarness", ["Chaos", "Processes", "TestSupport", "Threads"]),
        tests(
            of: "halcyon",
            [
                "Curl", "HalcyonCommand", "HalcyonModel", "HalcyonTraces", "JSON", "Kafka", "Processes", "Redis",
                "Settings", "Telemetry", "TestSupport", "Threads",
            ]),
    ] + fuzzing,
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx17
)
