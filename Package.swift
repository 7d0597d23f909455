// swift-tools-version: 6.2
import Foundation
import PackageDescription

// All C libraries come from Debian, and each has one Swift binding. There are no dependencies on Swift packages.
// Targets and dependencies are in architectural order: a target may import only targets above it.

/// A C library of the system, found with pkg-config and installed by `make deps`.
func systemLibrary(_ name: String, _ pkgConfig: String, apt: String) -> Target {
    .systemLibrary(name: name, path: "Sources/C/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

/// Modules that all server modules and tests may use.
let support: [Target.Dependency] = ["Formats", "Concurrency", "Subprocess", "JSON", "Hashing", "Telemetry"]

/// Dependencies of the modules that use Kafka and Redis.
let clustering = support + ["Kafka", "Redis", "HalcyonModel", "HalcyonCoding", "HalcyonCoordination"]

func module(
    _ folder: String, _ name: String, _ dependencies: [Target.Dependency] = [], resources: [Resource]? = nil,
    linker: [LinkerSetting]? = nil
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Sources/\(folder)/\(name)", resources: resources,
        linkerSettings: linker)
}

func program(_ name: String, _ path: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(name: name, dependencies: dependencies, path: path)
}

/// A test target with the name of its module. Shared code is in `Tests/Support`.
func tests(of name: String, _ dependencies: [Target.Dependency] = [], resources: [Resource]? = nil) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: [.byName(name: name), "TestSupport"] + support + dependencies,
        resources: resources)
}

/// A benchmark that prints the cost of Halcyon relative to plain C.
func benchmark(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    program(
        "\(name)Benchmark", "Benchmarks/\(name)Benchmark",
        support + ["Kafka", "HalcyonCluster", "Measuring", "TestSupport"] + dependencies)
}

/// Since version 1.0, hiredis has its TLS support in a separate library. The shim checks for the same header.
let hiredisTLS: [LinkerSetting]? =
    ["/usr/include", "/usr/local/include", "/opt/homebrew/include"]
        .contains { FileManager.default.fileExists(atPath: "\($0)/hiredis/hiredis_ssl.h") }
    ? [.linkedLibrary("hiredis_ssl"), .linkedLibrary("ssl"), .linkedLibrary("crypto")] : nil

/// Modules for programs with custom processors, sizers and providers (docs/extending.md).
let extensible = ["Vips", "HalcyonModel", "HalcyonImaging", "HalcyonSources", "HalcyonCLI"]
let extending = extensible.map(Target.Dependency.init(stringLiteral:))

/// The fuzzers, which need a sanitizer that `make fuzz` switches on.
let fuzzers = [
    program(
        "JobFuzzer", "Fuzzing/JobFuzzer",
        ["Hashing", "Vips", "HalcyonModel", "HalcyonCoding", "HalcyonImaging", "MalformedImages"]),
    program("OffsetFuzzer", "Fuzzing/OffsetFuzzer", ["HalcyonCluster"]),
]

let package = Package(
    name: "halcyon",
    // Minimum versions of Apple systems for the client. Everything else runs on Linux.
    platforms: [.macOS(.v15), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
    products: [
        .executable(name: "halcyon", targets: ["halcyon"]),
        .library(name: "HalcyonModel", targets: ["HalcyonModel"]),
        .library(name: "HalcyonKit", targets: ["HalcyonKit"]),
        .library(name: "HalcyonCLI", targets: extensible),
    ],
    targets: [
        // C: module maps and small shims.
        systemLibrary("CVips", "vips", apt: "libvips-dev"),
        systemLibrary("CCurl", "libcurl", apt: "libcurl4-openssl-dev"),
        systemLibrary("CRdKafka", "rdkafka", apt: "librdkafka-dev"),
        systemLibrary("CHiredis", "hiredis", apt: "libhiredis-dev"),
        systemLibrary("CMicroHTTP", "libmicrohttpd", apt: "libmicrohttpd-dev"),
        systemLibrary("CYaml", "yaml-0.1", apt: "libyaml-dev"),
        systemLibrary("CCrypto", "libcrypto", apt: "libssl-dev"),
        .target(name: "CLinux", path: "Sources/C/CLinux"),
        .target(name: "CSimdJSON", path: "Sources/C/CSimdJSON", linkerSettings: [.linkedLibrary("simdjson")]),

        // Support: independent of images, queues and Halcyon.
        module("Support", "Formats"),
        module("Support", "Concurrency", ["CLinux"]),
        module("Support", "Subprocess", ["CLinux", "Concurrency"]),
        module("Support", "JSON", ["CSimdJSON", "Concurrency"]),
        module("Support", "Hashing", ["CCrypto", "Concurrency"]),
        module("Support", "ProgramSettings", ["CYaml", "Formats"]),
        module("Support", "Telemetry", ["CLinux", "Formats", "Concurrency", "Subprocess", "JSON"]),

        // Bindings: one per C library, with owned handles, typed errors and async calls. Independent of Halcyon.
        module("Bindings", "Vips", ["CVips", "Concurrency"]),
        module("Bindings", "Curl", ["CCurl", "Formats", "Concurrency"]),
        module("Bindings", "Kafka", ["CRdKafka", "CLinux", "Concurrency"]),
        module("Bindings", "Redis", ["CHiredis", "Formats", "Concurrency"], linker: hiredisTLS),
        module("Bindings", "HTTPServer", ["CMicroHTTP", "CLinux", "Formats", "Concurrency"]),

        // Halcyon: values first, then modules with I/O.
        module("Halcyon", "HalcyonModel", ["Formats"]),
        module("Halcyon", "HalcyonCoding", ["Formats", "JSON", "Hashing", "HalcyonModel"]),
        module(
            "Halcyon", "HalcyonImaging", ["CLinux", "Concurrency", "Subprocess", "Hashing", "Vips", "HalcyonModel"]),
        module("Halcyon", "HalcyonTelemetry", ["Formats", "Telemetry", "Curl", "HTTPServer", "HalcyonModel"]),
        module("Halcyon", "HalcyonCoordination", ["Concurrency", "Telemetry", "Redis"]),
        module(
            "Halcyon", "HalcyonSources",
            support + ["CLinux", "Vips", "Curl", "Redis", "HalcyonModel", "HalcyonCoordination"]),
        module("Halcyon", "HalcyonCluster", clustering),
        module("Halcyon", "HalcyonNotifications", clustering + ["Curl", "HalcyonSources", "HalcyonCluster"]),
        module("Halcyon", "HalcyonWorker", clustering + ["HalcyonImaging", "HalcyonSources", "HalcyonCluster"]),
        module(
            "Halcyon", "HalcyonGateway", clustering + ["HTTPServer", "HalcyonTelemetry", "HalcyonCluster"],
            // Embedded, so that the executable needs no resource folder.
            resources: [
                .embedInCode("Documents/openapi.yaml"), .embedInCode("Documents/asyncapi.yaml"),
                .embedInCode("Dashboard/Page"),
            ]),
        // The client, on Foundation alone. The name Halcyon would collide with the executable if file names ignore case.
        module("Halcyon", "HalcyonKit"),
        // For `halcyon dev --demo`. The demo script and tests read the other photographs from the folder.
        .target(
            name: "SamplePhotographs", path: "Samples",
            exclude: ["README.md", "astronaut.jpg", "coffee.jpg", "hubble.jpg", "rocket.jpg"],
            resources: [.embedInCode("chelsea.jpg")]),
        module(
            "Halcyon", "HalcyonCLI",
            clustering + [
                "ProgramSettings", "Vips", "Curl", "HTTPServer", "HalcyonImaging", "HalcyonTelemetry", "HalcyonSources",
                "HalcyonCluster", "HalcyonNotifications", "HalcyonWorker", "HalcyonGateway", "SamplePhotographs",
            ]),
        program("halcyon", "Sources/Halcyon/halcyon", ["HalcyonCLI"]),

        // Examples: a program with extensions (docs/extending.md) and one that uses the client (docs/clients.md).
        program("halcyon-extended", "Examples/Extended", extending),
        .executableTarget(
            name: "client-example", dependencies: ["HalcyonKit"], path: "Examples/Swift",
            // Shows that importing HalcyonKit is enough under the strictest import rule.
            swiftSettings: [.enableUpcomingFeature("MemberImportVisibility")]),

        // Shared by tests: real servers as child processes, and malformed images.
        .target(
            name: "TestSupport", dependencies: ["Concurrency", "Subprocess", "Telemetry", "Kafka", "HTTPServer"],
            path: "Tests/Support",
            exclude: ["conformance", "documents.py", "otlp_spans.py", "requirements.txt", "s3_server.py"]),
        .target(
            name: "MalformedImages", dependencies: ["Vips", "HalcyonModel", "HalcyonImaging"],
            path: "Tests/MalformedImages"),
        // Programs started by tests.
        program(
            "AddressRunner", "Tests/AddressRunner", ["Concurrency", "Subprocess", "HalcyonModel", "HalcyonSources"]),
        program(
            "MalformedImageRunner", "Tests/MalformedImageRunner",
            ["CVips", "Vips", "HalcyonModel", "HalcyonCoding", "HalcyonImaging", "MalformedImages"]),
        program("CrashingExtensionHost", "Tests/CrashingExtensionHost", extending),
        program("ContactSheet", "Tests/ContactSheet", ["Vips", "HalcyonModel", "HalcyonImaging"]),

        .target(
            name: "PlainLoop", dependencies: ["CHiredis", "CRdKafka", "CVips"], path: "Benchmarks/PlainLoop"),
        .target(
            name: "Measuring",
            dependencies: support + ["Kafka", "Redis", "HalcyonCluster", "PlainLoop", "TestSupport"],
            path: "Benchmarks/Measuring"),
        benchmark("Render", ["Vips", "HalcyonModel", "HalcyonImaging"]),
        benchmark("Child", ["HalcyonModel", "HalcyonImaging"]),
        benchmark("Cluster", ["Vips"]),
        benchmark("Origin", ["Vips"]),
        benchmark("Events", ["CLinux"]),
        benchmark("Gateway", ["Curl", "HalcyonCoding"]),
        benchmark("Coding", ["HalcyonModel", "HalcyonCoding"]),

        // Chaos: injects faults and checks the delivery guarantees.
        .target(
            name: "ChaosHarness",
            dependencies: support
                + [
                    "Vips", "Kafka", "HalcyonModel", "HalcyonCoding", "HalcyonCluster", "MalformedImages",
                    "TestSupport",
                ],
            path: "Chaos/Harness"),
        program("Chaos", "Chaos/Program", ["Formats", "ProgramSettings", "ChaosHarness", "TestSupport"]),

        tests(of: "Curl", ["CLinux"]),
        tests(of: "Redis", ["CLinux"]),
        tests(of: "HalcyonModel", resources: [.copy("Vectors")]),
        tests(of: "HalcyonCoding", ["HalcyonModel"]),
        tests(
            of: "HalcyonImaging", ["CLinux", "Vips", "HalcyonModel", "MalformedImages", "MalformedImageRunner"],
            resources: [.copy("Processors/Goldens")]),
        tests(of: "HalcyonTelemetry", ["Curl", "HTTPServer"]),
        tests(of: "HalcyonCoordination", ["Redis"]),
        tests(of: "HalcyonSources", ["Vips", "Curl", "Redis", "HalcyonModel", "HalcyonCoordination", "AddressRunner"]),
        tests(of: "HalcyonCluster", clustering),
        tests(of: "HalcyonNotifications", clustering + ["HalcyonSources", "HalcyonCluster"]),
        tests(
            of: "HalcyonWorker",
            clustering + [
                "CLinux", "Vips", "HalcyonImaging", "HalcyonTelemetry", "HalcyonSources", "HalcyonCluster",
                "CrashingExtensionHost",
            ]),
        tests(
            of: "HalcyonGateway",
            clustering + [
                "Curl", "HTTPServer", "HalcyonTelemetry", "HalcyonSources", "HalcyonCluster", "HalcyonWorker",
            ]),
        tests(of: "HalcyonKit", ["HalcyonModel", "HalcyonCoding", "client-example"]),
        tests(of: "ChaosHarness", ["Chaos"]),
        tests(of: "halcyon", clustering + ["ProgramSettings", "Curl", "HalcyonTelemetry", "HalcyonCLI"]),
    ]
        + [
            "Formats", "Concurrency", "Subprocess", "JSON", "Hashing", "ProgramSettings", "Telemetry", "Vips", "Kafka",
            "HTTPServer",
        ].map { tests(of: $0) } + ["Delivery", "Gap", "Plan"].map { benchmark($0) }
        + (Context.environment["HALCYON_FUZZING"] == nil ? [] : fuzzers),
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx17
)
