// swift-tools-version: 6.2
import Foundation
import PackageDescription

// Every library below is Debian's and sits behind one door; no outside Swift package is needed.
// Targets are listed in the order of the architecture: each may import only what stands above it. So are dependencies.

/// A C library of the system, found through pkg-config, installed by `make deps`.
func systemLibrary(_ name: String, _ pkgConfig: String, apt: String) -> Target {
    .systemLibrary(name: name, path: "Sources/C/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

/// What every part of the server and every test may use.
let foundations: [Target.Dependency] = ["Formats", "Threads", "Processes", "JSON", "Digests", "Telemetry"]

/// What every part of the cluster may use that speaks to its servers.
let clustering = foundations + ["Kafka", "Redis", "HalcyonModel", "HalcyonWire", "HalcyonCoordination"]

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

/// Tests mirror modules; what they share stands in `Tests/Support`.
func tests(of name: String, _ dependencies: [Target.Dependency] = [], resources: [Resource]? = nil) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: [.byName(name: name), "TestSupport"] + foundations + dependencies,
        resources: resources)
}

/// Benchmarks print ratios: what the product costs beside the plainest C.
func benchmark(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    program(
        "\(name)Benchmark", "Benchmarks/\(name)Benchmark",
        foundations + ["Kafka", "HalcyonCluster", "Measuring", "TestSupport"] + dependencies)
}

/// TLS of hiredis is a library of its own, from 1.0 on; the shim looks for the same header.
let hiredisTLS: [LinkerSetting]? =
    ["/usr/include", "/usr/local/include", "/opt/homebrew/include"]
        .contains { FileManager.default.fileExists(atPath: "\($0)/hiredis/hiredis_ssl.h") }
    ? [.linkedLibrary("hiredis_ssl"), .linkedLibrary("ssl"), .linkedLibrary("crypto")] : nil

/// For programs that add processors, sizers and providers of their own: docs/extending.md.
let extensible = ["Vips", "HalcyonModel", "HalcyonImaging", "HalcyonSources", "HalcyonCommand"]
let extending = extensible.map(Target.Dependency.init(stringLiteral:))

/// The fuzzers need a sanitizer that everything else does without: `make fuzz` asks for it.
let fuzzers = [
    program(
        "JobFuzzer", "Fuzzing/JobFuzzer",
        ["Digests", "Vips", "HalcyonModel", "HalcyonWire", "HalcyonImaging", "HostileFiles"]),
    program("OffsetFuzzer", "Fuzzing/OffsetFuzzer", ["HalcyonCluster"]),
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
        .library(name: "HalcyonCommand", targets: extensible),
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
        module("Foundations", "Formats"),
        module("Foundations", "Threads", ["CLinux"]),
        module("Foundations", "Processes", ["CLinux", "Threads"]),
        module("Foundations", "JSON", ["CSimdJSON", "Threads"]),
        module("Foundations", "Digests", ["CCrypto", "Threads"]),
        module("Foundations", "ProgramSettings", ["CYaml", "Formats"]),
        module("Foundations", "Telemetry", ["CLinux", "Formats", "Threads", "Processes", "JSON"]),

        // Doors: one per library, handles owned, errors typed, async; know nothing of Halcyon.
        module("Doors", "Vips", ["CVips", "Threads"]),
        module("Doors", "Curl", ["CCurl", "Formats", "Threads"]),
        module("Doors", "Kafka", ["CRdKafka", "CLinux", "Threads"]),
        module("Doors", "Redis", ["CHiredis", "Formats", "Threads"], linker: hiredisTLS),
        module("Doors", "HTTPServer", ["CMicroHTTP", "CLinux", "Formats", "Threads"]),

        // Halcyon: pure values first, I/O at the edges.
        module("Halcyon", "HalcyonModel", ["Formats"]),
        module("Halcyon", "HalcyonWire", ["Formats", "JSON", "Digests", "HalcyonModel"]),
        module(
            "Halcyon", "HalcyonImaging", ["CLinux", "Threads", "Processes", "Digests", "Vips", "HalcyonModel"]),
        module("Halcyon", "HalcyonTelemetry", ["Formats", "Telemetry", "Curl", "HTTPServer", "HalcyonModel"]),
        module("Halcyon", "HalcyonCoordination", ["Threads", "Telemetry", "Redis"]),
        module(
            "Halcyon", "HalcyonSources",
            foundations + ["CLinux", "Vips", "Curl", "Redis", "HalcyonModel", "HalcyonCoordination"]),
        module("Halcyon", "HalcyonCluster", clustering),
        module("Halcyon", "HalcyonNotify", clustering + ["Curl", "HalcyonSources", "HalcyonCluster"]),
        module("Halcyon", "HalcyonWorker", clustering + ["HalcyonImaging", "HalcyonSources", "HalcyonCluster"]),
        module(
            "Halcyon", "HalcyonGateway", clustering + ["HTTPServer", "HalcyonTelemetry", "HalcyonCluster"],
            // Parts of the program: there is no folder to install beside it.
            resources: [
                .embedInCode("Documents/openapi.yaml"), .embedInCode("Documents/asyncapi.yaml"),
                .embedInCode("Dashboard/Page"),
            ]),
        // For applications: Foundation alone, and no module of the server's. It is not called Halcyon, because its
        // module and build folders would collide with those of the program where file systems ignore case.
        module("Halcyon", "HalcyonKit"),
        // For `halcyon dev --demo`; the demo script and tests read the others from the folder.
        .target(
            name: "SamplePhotographs", path: "Samples",
            exclude: ["README.md", "astronaut.jpg", "coffee.jpg", "hubble.jpg", "rocket.jpg"],
            resources: [.embedInCode("chelsea.jpg")]),
        module(
            "Halcyon", "HalcyonCommand",
            clustering + [
                "ProgramSettings", "Vips", "Curl", "HTTPServer", "HalcyonImaging", "HalcyonTelemetry", "HalcyonSources",
                "HalcyonCluster", "HalcyonNotify", "HalcyonWorker", "HalcyonGateway", "SamplePhotographs",
            ]),
        program("halcyon", "Sources/Halcyon/halcyon", ["HalcyonCommand"]),

        // Examples: a program with extensions of its own (docs/extending.md), and one on the client (docs/clients.md).
        program("halcyon-extended", "Examples/Extended", extending),
        .executableTarget(
            name: "client-example", dependencies: ["HalcyonKit"], path: "Examples/Swift",
            // The strictest rule for imports that an application may have: this one is enough for everything.
            swiftSettings: [.enableUpcomingFeature("MemberImportVisibility")]),

        // What tests share: real servers, started and stopped by process id, and files that somebody may send.
        .target(
            name: "TestSupport", dependencies: ["Threads", "Processes", "Telemetry", "Kafka", "HTTPServer"],
            path: "Tests/Support",
            exclude: ["conformance", "documents.py", "otlp_spans.py", "requirements.txt", "s3_server.py"]),
        .target(name: "HostileFiles", dependencies: ["Vips", "HalcyonModel", "HalcyonImaging"], path: "Tests/Hostile"),
        // Programs that tests start: one that loads, one that renders a file under watch, one whose extensions end it.
        program("AddressRunner", "Tests/AddressRunner", ["Threads", "Processes", "HalcyonModel", "HalcyonSources"]),
        program(
            "HostileRunner", "Tests/HostileRunner",
            ["CVips", "Vips", "HalcyonModel", "HalcyonWire", "HalcyonImaging", "HostileFiles"]),
        program("DeadlyHost", "Tests/DeadlyHost", extending),
        program("ContactSheet", "Tests/ContactSheet", ["Vips", "HalcyonModel", "HalcyonImaging"]),

        .target(
            name: "PlainLoop", dependencies: ["CHiredis", "CRdKafka", "CVips"], path: "Benchmarks/PlainLoop"),
        .target(
            name: "Measuring",
            dependencies: foundations + ["Kafka", "Redis", "HalcyonCluster", "PlainLoop", "TestSupport"],
            path: "Benchmarks/Measuring"),
        benchmark("Render", ["Vips", "HalcyonModel", "HalcyonImaging"]),
        benchmark("Child", ["HalcyonModel", "HalcyonImaging"]),
        benchmark("Cluster", ["Vips"]),
        benchmark("Origin", ["Vips"]),
        benchmark("Events", ["CLinux"]),
        benchmark("Gateway", ["Curl", "HalcyonWire"]),
        benchmark("Wire", ["HalcyonModel", "HalcyonWire"]),

        // Chaos: what workers are done, and whether they keep their promises.
        .target(
            name: "ChaosHarness",
            dependencies: foundations
                + ["Vips", "Kafka", "HalcyonModel", "HalcyonWire", "HalcyonCluster", "HostileFiles", "TestSupport"],
            path: "Chaos/Harness"),
        program("Chaos", "Chaos/Program", ["Formats", "ProgramSettings", "ChaosHarness", "TestSupport"]),

        tests(of: "Curl", ["CLinux"]),
        tests(of: "Redis", ["CLinux"]),
        tests(of: "HalcyonModel", resources: [.copy("Vectors")]),
        tests(of: "HalcyonWire", ["HalcyonModel"]),
        tests(
            of: "HalcyonImaging", ["CLinux", "Vips", "HalcyonModel", "HostileFiles", "HostileRunner"],
            resources: [.copy("Processors/Goldens")]),
        tests(of: "HalcyonTelemetry", ["Curl", "HTTPServer"]),
        tests(of: "HalcyonCoordination", ["Redis"]),
        tests(of: "HalcyonSources", ["Vips", "Curl", "Redis", "HalcyonModel", "HalcyonCoordination", "AddressRunner"]),
        tests(of: "HalcyonCluster", clustering),
        tests(of: "HalcyonNotify", clustering + ["HalcyonSources", "HalcyonCluster"]),
        tests(
            of: "HalcyonWorker",
            clustering + [
                "CLinux", "Vips", "HalcyonImaging", "HalcyonTelemetry", "HalcyonSources", "HalcyonCluster",
                "DeadlyHost",
            ]),
        tests(
            of: "HalcyonGateway",
            clustering + [
                "Curl", "HTTPServer", "HalcyonTelemetry", "HalcyonSources", "HalcyonCluster", "HalcyonWorker",
            ]),
        tests(of: "HalcyonKit", ["HalcyonModel", "HalcyonWire", "client-example"]),
        tests(of: "ChaosHarness", ["Chaos"]),
        tests(of: "halcyon", clustering + ["ProgramSettings", "Curl", "HalcyonTelemetry", "HalcyonCommand"]),
    ]
        + [
            "Formats", "Threads", "Processes", "JSON", "Digests", "ProgramSettings", "Telemetry", "Vips", "Kafka",
            "HTTPServer",
        ].map { tests(of: $0) } + ["Delivery", "Gap", "Plan"].map { benchmark($0) }
        + (Context.environment["HALCYON_FUZZING"] == nil ? [] : fuzzers),
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx17
)
