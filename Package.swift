// swift-tools-version: 6.2
import Foundation
import PackageDescription

// All C libraries come from Debian, and each has one Swift binding. There are no dependencies on Swift packages.
// Targets and dependencies are in architectural order: a target may import only targets above it.

/// A C library of the system, installed by `make deps`. Where pkg-config would give flags that SwiftPM warns about, it
/// is not asked (hiredis, libcrypto), or asked for GObject alone (libvips).
func systemLibrary(_ name: String, _ pkgConfig: String?, apt: String) -> Target {
    .systemLibrary(name: name, path: "Sources/C/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

/// Modules that all server modules and tests may use.
let support = ["Formats", "Concurrency", "Subprocess", "JSON", "Hashing", "Telemetry"]

/// Dependencies of the modules that use Kafka and Redis.
let clustering = support + ["Kafka", "Redis", "HalcyonModel", "HalcyonCoding", "HalcyonCoordination"]

/// Dependencies of modules that transfer files.
let transfers = support + ["CLinux", "Curl", "HalcyonModel"]

/// Modules that keep sources and results.
let storage = ["HalcyonSources", "HalcyonResults", "HalcyonCluster"]

/// The targets with these names, without repetitions.
func targets(_ names: [String]) -> [Target.Dependency] { Set(names).sorted().map { .byName(name: $0) } }

/// Optimizes debug builds, too, for loops over pixels and over the states of a model.
let optimized: [SwiftSetting] = [.unsafeFlags(["-O"], .when(configuration: .debug))]

func library(
    _ name: String, _ path: String, _ dependencies: [String], exclude: [String] = [],
    swift: [SwiftSetting]? = nil, linker: [LinkerSetting]? = nil
) -> Target {
    .target(
        name: name, dependencies: targets(dependencies), path: path, exclude: exclude,
        swiftSettings: swift, linkerSettings: linker)
}

func module(
    _ folder: String, _ name: String, _ dependencies: [String] = [], exclude: [String] = [],
    swift: [SwiftSetting]? = nil, linker: [LinkerSetting]? = nil
) -> Target {
    library(name, "Sources/\(folder)/\(name)", dependencies, exclude: exclude, swift: swift, linker: linker)
}

func program(_ name: String, _ path: String, _ dependencies: [String], linker: [LinkerSetting]? = nil) -> Target {
    .executableTarget(name: name, dependencies: targets(dependencies), path: path, linkerSettings: linker)
}

/// A test target with the name of its module. Shared code is in `Tests/Support`.
func tests(
    of name: String, _ dependencies: [String] = [], resources: [Resource]? = nil, swift: [SwiftSetting]? = nil
) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: targets([name, "TestSupport"] + support + dependencies),
        resources: resources, swiftSettings: swift)
}

/// Since version 1.0, hiredis has its TLS support in a separate library. The shim checks for the same header.
let hiredisTLS: [LinkerSetting]? =
    ["/usr/include", "/usr/local/include", "/opt/homebrew/include"]
        .contains { FileManager.default.fileExists(atPath: "\($0)/hiredis/hiredis_ssl.h") }
    ? [.linkedLibrary("hiredis_ssl"), .linkedLibrary("ssl"), .linkedLibrary("crypto")] : nil

/// The memory allocator of programs that process jobs, instead of that of the C library (docs/deployment.md). A sanitizer
/// checks only what it allocates itself.
let allocator: [LinkerSetting] =
    Context.environment["HALCYON_SANITIZER"] == nil ? [.linkedLibrary("tcmalloc_minimal")] : []

/// Modules that render images.
let imaging = ["Vips", "HalcyonModel", "HalcyonImaging"]

/// Modules for programs with custom processors, sizers and providers (docs/extending.md).
let extensible = imaging + ["HalcyonSources", "HalcyonCLI"]

/// The benchmarks, which print the cost of Halcyon relative to plain C.
let benchmarks = "Child Cluster Coding Delivery Events Gap Gateway Origin Plan Render Store".split(separator: " ").map {
    program(
        "\($0)Benchmark", "Benchmarks/\($0)Benchmark",
        clustering + imaging + ["CLinux", "Curl", "HalcyonCluster", "Measuring", "TestSupport"], linker: allocator)
}

/// The fuzzers, which need a sanitizer that `make fuzz` switches on.
let fuzzers = [
    program("JobFuzzer", "Fuzzing/JobFuzzer", imaging + ["Hashing", "HalcyonCoding", "MalformedImages"]),
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
        systemLibrary("CVips", "gobject-2.0", apt: "libvips-dev"),
        systemLibrary("CCurl", "libcurl", apt: "libcurl4-openssl-dev"),
        systemLibrary("CRdKafka", "rdkafka", apt: "librdkafka-dev"),
        systemLibrary("CHiredis", nil, apt: "libhiredis-dev"),
        systemLibrary("CMicroHTTP", "libmicrohttpd", apt: "libmicrohttpd-dev"),
        systemLibrary("CYaml", "yaml-0.1", apt: "libyaml-dev"),
        systemLibrary("CCrypto", nil, apt: "libssl-dev"),
        systemLibrary("CExpat", "expat", apt: "libexpat1-dev"),
        .target(name: "CLinux", path: "Sources/C/CLinux"),
        .target(name: "CEmbeddedFiles", path: "Sources/C/CEmbeddedFiles"),
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
        module("Bindings", "Vips", ["CVips", "Concurrency"], swift: optimized),
        module("Bindings", "Curl", ["CCurl", "Formats", "Concurrency"]),
        module("Bindings", "Expat", ["CExpat"]),
        module("Bindings", "Kafka", ["CRdKafka", "CLinux", "Concurrency"]),
        module("Bindings", "Redis", ["CHiredis", "Formats", "Concurrency"], linker: hiredisTLS),
        module("Bindings", "HTTPServer", ["CMicroHTTP", "CLinux", "Formats", "Concurrency"]),

        // Halcyon: values first, then modules with I/O.
        module("Halcyon", "HalcyonModel", ["Formats"]),
        module("Halcyon", "HalcyonCoding", ["Formats", "JSON", "Hashing", "HalcyonModel"]),
        module("Halcyon", "HalcyonImaging", support + ["CLinux", "Vips", "HalcyonModel"]),
        module("Halcyon", "HalcyonTelemetry", ["Formats", "Telemetry", "Curl", "HTTPServer", "HalcyonModel"]),
        module("Halcyon", "HalcyonCoordination", ["Concurrency", "Telemetry", "Redis"]),
        module("Halcyon", "HalcyonSources", transfers + ["Expat", "Vips", "Redis", "HalcyonCoordination"]),
        module("Halcyon", "HalcyonResults", transfers + ["Expat", "HalcyonCoding", "HalcyonSources"]),
        module("Halcyon", "HalcyonCluster", clustering + ["HalcyonResults"]),
        module("Halcyon", "HalcyonNotifications", clustering + ["Curl", "HalcyonSources", "HalcyonCluster"]),
        module("Halcyon", "HalcyonWorker", clustering + storage + ["HalcyonImaging"]),
        module(
            "Halcyon", "HalcyonGateway", clustering + storage + ["CEmbeddedFiles", "HTTPServer", "HalcyonTelemetry"],
            // In CEmbeddedFiles, so that the executable needs no resource folder.
            exclude: ["Documents", "Dashboard/Page"]),
        // The client, on Foundation alone. The name Halcyon would collide with the executable if file names ignore
        // case.
        module("Halcyon", "HalcyonKit"),
        module(
            "Halcyon", "HalcyonCLI",
            clustering + storage + [
                "ProgramSettings", "Vips", "Curl", "HTTPServer", "HalcyonImaging", "HalcyonTelemetry",
                "HalcyonNotifications", "HalcyonWorker", "HalcyonGateway",
            ]),
        program("halcyon", "Sources/Halcyon/halcyon", ["HalcyonCLI"], linker: allocator),

        // Examples: a program with extensions (docs/extending.md), and two that use the client (docs/clients.md).
        program("halcyon-extended", "Examples/Extended", extensible, linker: allocator),
        program("server-example", "Examples/Swift/Server", ["HTTPServer", "HalcyonKit"]),
        .executableTarget(
            name: "client-example", dependencies: ["HalcyonKit"], path: "Examples/Swift/CommandLine",
            // Shows that importing HalcyonKit is enough under the strictest import rule.
            swiftSettings: [.enableUpcomingFeature("MemberImportVisibility")]),

        // Shared by tests: real servers as child processes, and malformed images.
        library(
            "TestSupport", "Tests/Support", ["Concurrency", "Subprocess", "Telemetry", "Kafka", "Redis", "HTTPServer"],
            exclude: ["conformance", "documents.py", "otlp_spans.py", "ports.py", "requirements.txt", "s3_server.py"]),
        library("MalformedImages", "Tests/MalformedImages", imaging, swift: optimized),
        // Programs started by tests.
        program("AddressRunner", "Tests/AddressRunner", support + ["HalcyonModel", "HalcyonSources"]),
        program(
            "MalformedImageRunner", "Tests/MalformedImageRunner",
            imaging + ["CVips", "HalcyonCoding", "MalformedImages"]),
        program("CrashingExtensionHost", "Tests/CrashingExtensionHost", extensible),
        program("ContactSheet", "Tests/ContactSheet", imaging),
        library(
            "PlainLoop", "Benchmarks/PlainLoop", ["CHiredis", "CRdKafka", "CVips"],
            linker: ["vips", "hiredis"].map { .linkedLibrary($0) }),
        library("Measuring", "Benchmarks/Measuring", clustering + ["HalcyonCluster", "PlainLoop", "TestSupport"]),

        // Chaos: injects faults and checks the delivery guarantees.
        library(
            "ChaosHarness", "Chaos/Harness", clustering + storage + ["Vips", "MalformedImages", "TestSupport"]),
        program("Chaos", "Chaos/Program", ["Formats", "ProgramSettings", "ChaosHarness", "TestSupport"]),

        tests(of: "Curl", ["CLinux"]),
        tests(of: "Redis", ["CLinux"]),
        tests(of: "HalcyonModel", resources: [.copy("Vectors")]),
        tests(of: "HalcyonCoding", ["HalcyonModel"]),
        tests(
            of: "HalcyonImaging", imaging + ["CLinux", "MalformedImages", "MalformedImageRunner"],
            resources: [.copy("Processors/Goldens")]),
        tests(of: "HalcyonTelemetry", ["Curl", "HTTPServer"]),
        tests(of: "HalcyonCoordination", ["Redis"], swift: optimized),
        tests(of: "HalcyonSources", clustering + ["CLinux", "Vips", "Curl", "AddressRunner"]),
        tests(of: "HalcyonResults", ["HalcyonModel", "HalcyonSources"]),
        tests(of: "HalcyonCluster", clustering),
        tests(of: "HalcyonNotifications", clustering + ["HalcyonSources", "HalcyonCluster"]),
        tests(
            of: "HalcyonWorker",
            clustering + imaging + storage + ["CLinux", "HalcyonTelemetry", "CrashingExtensionHost"]),
        tests(
            of: "HalcyonGateway", clustering + storage + ["Curl", "HTTPServer", "HalcyonTelemetry", "HalcyonWorker"]),
        tests(of: "HalcyonKit", imaging + ["HalcyonCoding", "client-example", "server-example"]),
        tests(of: "ChaosHarness", ["Chaos", "HalcyonModel", "HalcyonResults"]),
        tests(of: "halcyon", clustering + storage + ["ProgramSettings", "Curl", "HalcyonTelemetry", "HalcyonCLI"]),
    ]
        + [
            "Formats", "Concurrency", "Subprocess", "JSON", "Hashing", "ProgramSettings", "Telemetry", "Vips", "Expat",
            "Kafka", "HTTPServer",
        ].map { tests(of: $0) }
        + benchmarks
        + (Context.environment["HALCYON_FUZZING"] == nil ? [] : fuzzers),
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx17
)
