import Concurrency
import Glibc
import Subprocess
import TestSupport
import Testing

/// Commands that need no server: help, usage errors, keys, completions.
@Suite struct CommandLineTests {
    static let commands = [
        "dev", "worker", "submit", "get", "key", "events", "top", "render", "info", "jobs", "cancel", "pause", "resume",
        "purge",
        "trim", "topics create",
        "topics list", "dead list", "dead show", "dead replay", "doctor",
        "health", "bench", "config",
        "completions",
    ]

    @Test(arguments: commands) func everyCommandHasHelpWithExamples(command: String) async throws {
        let run = try await Executable.run(command.split(separator: " ").map(String.init) + ["--help"]).expect(0)
        #expect(run.output.contains("Usage: halcyon \(command)"))
        #expect(run.output.contains("Examples:\n"))
        #expect(run.errors.isEmpty)
    }

    @Test func helpOfSubmitIsShortUnlessAllOfItIsWanted() async throws {
        let short = try await Executable.run(["submit", "--help"]).expect(0).output
        let complete = try await Executable.run(["submit", "--help-all"]).expect(0).output
        for title in ["Source", "Sizing", "Output", "Schedule", "Cache", "Connection"] {
            #expect(short.contains("\n\n\(title):\n") && complete.contains("\n\n\(title):\n"), "\(title)")
        }
        #expect(short.contains("  --width ") && !short.contains("  --effort "))
        #expect(complete.contains("  --effort ") && complete.contains("\n\nDelivery:\n"))
        #expect(short.split(separator: "\n").count < 100)
    }

    @Test func programPrintsItsCommandsAndItsVersion() async throws {
        let help = try await Executable.run(["--help"]).expect(0).output
        for command in Self.commands { #expect(help.contains("  \(command.prefix { $0 != " " }) ")) }
        #expect(try await Executable.run(["--version"]).expect(0).output.split(separator: ".").count == 3)
    }

    @Test(
        arguments: [
            ("", "a command is missing"),
            ("sumbit", "did you mean submit?"),
            ("submit", "nothing to submit: give a SOURCE, --from-file or --job"),
            ("submit cat.jpg", "source: expected an absolute URL"),
            ("submit ftp://example.org/cat.jpg", "no provider for ftp: URLs"),
            ("submit https://example.org/ --wdith 3", "unknown option --wdith; did you mean --width?"),
            ("submit https://example.org/ --width wide", "--width: expected a number, found 'wide'"),
            ("submit https://example.org/ --width -3", "--width: expected 0.0 to 65535.0, found -3.0"),
            ("submit https://example.org/ --screen-scale 9", "--screen-scale: expected 1.0 to 4.0, found 9.0"),
            ("submit https://example.org/ --quality 0", "--quality: expected 1 to 100, found 0"),
            ("submit https://example.org/ --effort 1.5", "--effort: expected a whole number"),
            ("submit https://example.org/ --crop-rect 0,0,1", "--crop-rect: expected four numbers such as"),
            ("submit https://example.org/ --crop-rect 0,0,-1,1", "--crop-rect: width: expected 0.0 to 1000.0"),
            ("submit https://example.org/ --crop-rect 1,0,1,1", "--crop-rect: lies outside the image"),
            ("submit https://example.org/ --sizer big", "--sizer: expected natural, aspectScaleDownByWidth=PIXELS"),
            (
                "submit https://example.org/ --sizer natural --width 3",
                "--sizer: cannot be combined with width or height"
            ),
            ("submit https://example.org/ --content-mode contian", "did you mean contain?"),
            ("submit https://example.org/ --format bmp", "--format: expected one of auto, best, jpeg, png, webp, avif"),
            (
                "submit https://example.org/ --gravity middle",
                "--gravity: expected center, attention, entropy, faces, objects, or a point"
            ),
            (
                "submit https://example.org/ --gravity 0.5",
                "--gravity: expected center, attention, entropy, faces, objects, or a point"
            ),
            ("submit https://example.org/ --gravity 0.5,2", "--gravity: y: expected 0.0 to 1.0, found 2.0"),
            ("submit https://example.org/ --background whit", "--background: expected a CSS color such as white"),
            ("submit https://example.org/ --upscale --no-upscale", "--upscale and --no-upscale contradict each other"),
            ("submit https://example.org/ --processor {", "--processor: expected a name such as blackWhite, or JSON"),
            (
                "submit https://example.org/ --processor blurr",
                "--processor (number 1): blurr: unknown processor; did you mean"
            ),
            (
                #"submit https://example.org/ --processor blackWhite --processor {"blur":{"radius":-1}}"#,
                "--processor (number 2): blur.radius: expected 0.0 to"
            ),
            ("submit https://example.org/ --frames 0", "--frames: expected 1 to 65535, found 0"),
            (
                "submit https://example.org/ --format jpeg --bit-depth 16",
                "--bit-depth: 16 bits require the format png or tiff or jxl"
            ),
            ("submit initials:ABCD", "source: expected 1 to 3 initials without spaces"),
            (
                "key https://example.org/ --set images.formats=xcf",
                "images.formats: expected a list, each one of jpeg, png"
            ),
            (
                "key https://example.org/ --set images.formats=",
                "images.formats: expected at least one format"
            ),
            ("submit https://example.org/ --metadata {", "--metadata: expected JSON such as"),
            ("submit https://example.org/ --deadline soon", "--deadline: expected seconds, or a date and time"),
            ("submit https://example.org/ --lane slow", "--lane: expected one of high, normal, low, found 'slow'"),
            ("submit https://example.org/ --timeout 5", "--timeout: expected a duration such as 500ms"),
            (
                "submit https://example.org/ https://example.org/2 --id x",
                "an id can name only one job, and there are 2"
            ),
            ("submit https://example.org/ --job /no/such/file", "cannot read /no/such/file: No such file"),
            ("submit --job - --from-file -", "cannot both be standard input"),
            ("submit --from-file -", "no jobs found"),
            (
                "submit https://example.org/ --set kafka.broker=x",
                "unknown setting kafka.broker; did you mean kafka.brokers?"
            ),
            ("submit https://example.org/ --set kafka.properties.x=1", "property x: No such configuration property"),
            ("submit https://example.org/ --set prefix", "expected NAME=VALUE"),
            ("key", "SOURCE is missing"),
            ("key https://example.org/ --height 0", "--height: expected a number above 0"),
            ("topics list --redis redis://x", "unknown option --redis"),
            ("plan --rate 1 --brokers x", "unknown option --brokers"),
            ("--brokers x submit https://example.org/", "--brokers must follow the command"),
            ("get https://example.org/ --redis http://x", "redis.url: not a Redis address"),
            (
                "get https://example.org/ --head -o x.jpg",
                "--head cannot be combined with -o, because it reads no image"
            ),
            ("key https://example.org/ --tenant a/b", "--tenant: expected 1 to 64 letters, digits, dots"),
            ("key https://example.org/ --header Accept", "--header: expected a header such as Accept:image/webp"),
            (
                "get https://example.org/ --header Host:h",
                "--header: Host: is set by the source's URL and cannot be set by a job"
            ),
            ("submit https://example.org/ --header a:1 --header A:2", "--header: A: duplicate field"),
            ("submit https://example.org/ --header a:1 --header a:2", "--header"),
            ("submit initials:JD --header a:1", "--header: supported only for http and https sources"),
            ("render initials:JD -o /dev/null --header a:1", "--header: supported only for http and https sources"),
            ("submit https://example.org/ --reload --only-if-cached", "reload and onlyIfCached cannot be combined"),
            ("cancel", "nothing to cancel"),
            ("purge", "nothing to purge; give one of --source, --tag and --key"),
            (
                "purge --tag a --source https://example.org/",
                "--source, --tag and --key cannot be combined; give only one"
            ),
            ("purge --source ftp://example.org/a", "--source: no provider for ftp: URLs"),
            ("purge --key halcyon:{0}:1", "--key: expected a key such as"),
            ("purge --tag a --tenant a:b", "--tenant: expected 1 to 64 letters"),
            ("submit https://example.org/ --generation 3", "--generation: requires a slot"),
            ("submit https://example.org/ --slot a --generation -1", "--generation: expected 0 to 9007199254740992"),
            ("trim", "no limit given; use --bytes, --pixels or --count"),
            ("trim --bytes -1", "--bytes: expected a byte size such as 512MiB"),
            ("trim --tenant a:b --count 0", "--tenant: expected 1 to 64 letters, digits, dots"),
            ("key https://example.org/ --set cache.jitter=0.6", "cache.jitter"),
            ("events --since yesterday", "--since: expected now, beginning, a duration"),
            ("events --type redy", "did you mean ready?"),
            ("events --limit 0", "--limit: expected a whole number of at least 1"),
            ("render /no/such/file -o /dev/null", "cannot read /no/such/file"),
            ("topics", "a command is missing"),
            ("topics create --partitions 0", "--partitions: expected a whole number from 1"),
            ("completions tcsh", "SHELL: expected one of bash, zsh, fish, found 'tcsh'"),
        ] as [(String, String)]) func reportsUsageErrors(line: String, message: String) async throws
    {
        let run = try await Executable.run(line.split(separator: " ").map(String.init))
        // A missing file is not a usage error.
        run.expect(message.hasPrefix("cannot read") ? 1 : 2)
        #expect(run.errors.contains(message), "\(run.errors)")
        #expect(run.errors.hasPrefix("halcyon: "))
        #expect(run.bytes.isEmpty)
    }

    @Test(
        arguments: [
            (#"{"source": "https://example.org/", "width": -3}"#, "standard input:2: width: expected 0.0 to 65535.0"),
            (#"{"source": "https://example.org/""#, "standard input:2: is not well-formed JSON"),
            (#"{"width": 3, "width": 4}"#, "standard input:2: width: duplicate name"),
            (#"{"width": 3}"#, "standard input:2: source: is missing"),
            ("cat.jpg", "standard input:2: source: expected an absolute URL"),
            (
                #"{"source": "https://example.org/", "id": "same"}"# + "\n"
                    + #"{"source": "https://example.org/", "id": "same"}"#,
                "standard input:3: duplicate id same"
            ),
        ]) func reportsTheLineOfErrorsInFiles(lines: String, message: String) async throws
    {
        let run = try await Executable.run(["submit", "--from-file", "-"], input: "https://example.org/\n\(lines)\n")
            .expect(2)
        #expect(run.errors.contains(message), "\(run.errors)")
    }

    @Test(arguments: [
        "\u{0}", "[]", "{", "nul", "\u{feff}{}", String(repeating: "[", count: 100_000), #"{"id": 1e999}"#,
    ])
    func rejectsMalformedJobs(job: String) async throws {
        let run = try await Executable.run(["key", "--job", "-"], input: job).expect(2)
        #expect(run.bytes.isEmpty && !run.errors.isEmpty)
    }

    @Test func rejectsRandomBytesAsAFileOfJobs() async throws {
        let folder = TemporaryFolder("rubbish")
        for length in [1, 100, 10_000] {
            let file = folder.write((0..<length).map { _ in UInt8.random(in: 128...255) }, to: "jobs")
            try await Executable.run(["submit", "--from-file", file]).expect(2)
        }
        await folder.remove()
    }

    @Test func commandLineOverridesTheJob() async throws {
        let job = #"{"source": "https://example.org/a.jpg", "width": 10, "format": "webp"}"#
        let alone = try await Executable.run(["key", "--job", "-", "--text"], input: job).expect(0).output
        #expect(alone.contains("url:https://example.org/a.jpg\n") && alone.contains("size=width 10\nformat=webp\n"))
        let over = try await Executable.run(
            ["key", "https://example.org/b.jpg", "--job", "-", "--width", "20", "--text"], input: job)
        #expect(over.expect(0).output.contains("url:https://example.org/b.jpg\n"))
        #expect(over.output.contains("size=width 20\nformat=webp\n"))
    }

    @Test func everySizingOptionAffectsTheKey() async throws {
        let line = """
            key https://example.org/a.jpg --page 2 --width 40 --height 30 --screen-scale 2 --content-mode contain \
            --scale-options fitCropsExcess --crop-rect 0.5,0,0.5,1 --interpolation-quality low --format webp \
            --position top --trim {"tolerance":3} --linear-light --before flip \
            --quality 70 --lossless --effort 3 --progressive --no-upscale --background #ff8800 --processor blackWhite \
            --processor {"blur":{"radius":2}} --keep-metadata --maximum-bytes 50000 --allow-resize \
            --near-lossless --chroma-subsampling 4:4:4 --quantize 16 --profile p3 --frames 5 --blurhash --dominant-color \
            --palette --thumbhash --phash --text
            """
        let text = try await Executable.run(line.split(separator: " ").map(String.init)).expect(0).output
        #expect(
            text == """
                halcyon-source/1
                url:https://example.org/a.jpg
                halcyon-variant/1
                page=2
                before=flip horizontal
                crop=0.5,0,0.5,1
                trim=3
                size=40x30@2 scaleAspectFit cropsExcess
                upscale=false
                interpolation=low
                linear-light
                background=#ff8800ff
                processor=blackWhite
                processor=blur radius=4
                format=webp
                quality=70
                maximum-bytes=50000
                allow-resize
                lossless
                near-lossless
                chroma=4:4:4
                quantize=16 dither=1
                effort=3
                progressive
                metadata
                profile=p3
                frames=5
                blurhash
                dominant-color
                palette
                thumbhash
                phash

                """)
        let facts = try await Executable.run(["key", "https://example.org/", "--info", "--phash", "--text"]).expect(0)
        #expect(facts.output.hasSuffix("size=natural\nphash\ninfo\n"))
        let sizer = try await Executable.run([
            "key", "https://example.org/", "--sizer", "aspectScaleDownByHeight=60", "--text",
        ])
        #expect(sizer.expect(0).output.contains("size=height 60\n"))
        for (gravity, line) in [("attention", "attention"), ("0.5,0.2", "0.5,0.2")] {
            let run = try await Executable.run([
                "key", "https://example.org/", "--width", "3", "--height", "3", "--gravity", gravity, "--text",
            ])
            #expect(run.expect(0).output.contains("gravity=\(line)\n"))
        }
        let deep = ["key", "https://example.org/", "--format", "png", "--bit-depth", "16", "--text"]
        #expect(try await Executable.run(deep).expect(0).output.hasSuffix("format=png\nbit-depth=16\n"))
        let up = try await Executable.run(["key", "https://example.org/", "--width", "3", "--upscale", "--text"])
        #expect(up.expect(0).output.contains("size=width 3\nupscale=true\n"))
        let none = try await Executable.run(["key", "https://example.org/", "--width", "3", "--no-sizing", "--text"])
        #expect(none.expect(0).output.contains("size=natural\n"))
    }

    @Test func everyVariantHasItsOwnKey() async throws {
        let job =
            #"{"source": "initials:JD", "format": "webp", "variants": [{"width": 10}, {"width": 20, "format": "png"}]}"#
        let keys = try await Executable.run(["key", "--job", "-"], input: job).expect(0).lines
        #expect(keys.count == 2 && keys[0] != keys[1])
        let second = try await Executable.run(["key", "initials:JD", "--width", "20", "--format", "png"]).expect(0)
        #expect(second.lines == [keys[1]])
        let facts = try await Executable.run(["key", "--job", "-", "--json"], input: job).expect(0).json()
        #expect(facts.map { $0.at("key") } == keys)
        #expect(facts.map { $0.at("variantText")?.hasSuffix("format=webp\n") } == [true, false])
        let text = try await Executable.run(["key", "--job", "-", "--text"], input: job).expect(0).output
        #expect(
            text.hasPrefix("halcyon-source/1\ninitials:JD ") && text.split(separator: "halcyon-variant/1\n").count == 3)
    }

    @Test func tenantIsPartOfTheKey() async throws {
        let plain = try await Executable.run(["key", "initials:JD", "--width", "10"]).expect(0).lines
        let own = try await Executable.run(["key", "initials:JD", "--width", "10", "--tenant", "shop-7"]).expect(0)
            .lines
        #expect(own != plain)
        let job = #"{"source": "initials:JD", "width": 10, "tenant": "shop-7"}"#
        #expect(try await Executable.run(["key", "--job", "-"], input: job).expect(0).lines == own)
        let text = try await Executable.run(["key", "--job", "-", "--text"], input: job).expect(0).output
        #expect(text.contains("\ntenant:shop-7\n"))
        let facts = try await Executable.run(["key", "--job", "-", "--json"], input: job).expect(0).json()
        #expect(facts[0].at("sourceText")?.hasPrefix("halcyon-source/1\ntenant:shop-7\n") == true)
    }

    @Test func headersArePartOfTheKey() async throws {
        let command = ["key", "https://h/", "--width", "10", "--text"]
        let given = ["--header", "X-Size: 2 ", "--header", "accept:image/webp", "--header", "traceparent:00"]
        let text = try await Executable.run(command + given).expect(0).output
        #expect(text.hasPrefix("halcyon-source/1\nheader: accept=image/webp\nheader: x-size=2\nurl:https://h/\n"))
        let job = #"{"source": "https://h/", "width": 10, "headers": {"X-Size": "2", "Accept": "image/webp"}}"#
        #expect(try await Executable.run(["key", "--job", "-", "--text"], input: job).expect(0).output == text)
        // Headers on the command line replace all headers of the job.
        let other = try await Executable.run(["key", "--job", "-", "--text", "--header", "B:"], input: job).expect(0)
        #expect(other.output.hasPrefix("halcyon-source/1\nheader: b=\nurl:https://h/\n"))
    }

    @Test(arguments: ["--version", "submit --help", "completions bash", "key initials:A --width 3"])
    func failsIfItsOutputIsLost(line: String) async throws {
        let full = open("/dev/full", O_WRONLY | O_CLOEXEC)
        let (exit, errors) = try await run(line, output: full)
        #expect(exit == .code(1))
        #expect(errors == "halcyon: cannot write to standard output: No space left on device\n")
    }

    @Test func readersMayCloseThePipe() async throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        close(ends[0])
        let (exit, errors) = try await run("completions bash", output: ends[1])
        #expect(exit == .code(0))
        #expect(errors.isEmpty)
    }

    /// Runs the program with a descriptor as standard output, and closes it.
    private func run(_ line: String, output: Int32) async throws -> (exit: ChildProcess.Exit, errors: String) {
        let folder = TemporaryFolder("output")
        let file = open("\(folder.path)/errors", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        var options = ChildProcess.Options()
        options.environment = ["PATH": "/usr/bin:/bin"]
        options.output = .descriptor(output)
        options.errors = .descriptor(file)
        let arguments = line.split(separator: " ").map(String.init)
        let exit = try await ChildProcess.start(HalcyonExecutable.path, arguments, options: options).exit()
        let errors = Executable.text(folder.read("errors"))
        close(output)
        close(file)
        await folder.remove()
        return (exit, errors)
    }

    @Test(arguments: ["bash", "zsh", "fish"]) func completionsContainCommandsAndOptions(shell: String) async throws {
        let script = try await Executable.run(["completions", shell]).expect(0).output
        for word in ["submit", "create", "crop-rect", "scaleAspectFill"] { #expect(script.contains(word)) }
    }

    /// Runs on the first of the processors that this process may use.
    @Test func rendersOneImagePerAvailableProcessor() async throws {
        let script =
            #"exec taskset --cpu-list "$(taskset --cpu-list --pid $$ | sed 's/.*: //; s/[,-].*//')" "$0" doctor"#
        let lines = Lock<[String]>([])
        var options = ChildProcess.Options()
        options.output = .lines { line in lines.withLock { $0.append(line) } }
        let unused = "127.0.0.1:\(LoopbackPort.reserve())"
        options.environment = [
            "PATH": "/usr/bin:/bin", "HALCYON_KAFKA_BROKERS": unused, "HALCYON_REDIS_URL": "redis://\(unused)",
        ]
        try await ChildProcess.start("/bin/sh", ["-c", script, HalcyonExecutable.path], options: options).exit()
        try await until("doctor reports one image") {
            lines.withLock { $0 }.contains { $0.contains("1 image at once, in ") }
        }
    }

    @Test func reportsUnavailableServersAndWhatToDo() async throws {
        let unused = "127.0.0.1:\(LoopbackPort.reserve())"
        let submit = try await Executable.run(
            ["submit", "https://example.org/", "--brokers", unused, "--timeout", "3s"]
        ).expect(1)
        #expect(submit.errors.contains("Kafka does not answer at \(unused)"))
        #expect(submit.errors.contains("is it running, and is the address right (--brokers)?"))
        #expect(submit.bytes.isEmpty)
        let get = try await Executable.run(["get", "https://example.org/", "--redis", "redis://\(unused)"]).expect(1)
        #expect(get.errors.contains("Redis at redis://\(unused)") && get.errors.contains("halcyon doctor"))
        let doctor = try await Executable.run(["doctor", "--json", "--brokers", unused, "--redis", "redis://\(unused)"])
            .expect(1)
        let findings = try #require(try doctor.json().first)
        #expect(findings.at("healthy") == "false")
        var broken: [String] = []
        try findings.member("findings")?.forEachElement { finding in
            if finding.at("level") == "broken" { broken.append(finding.at("subject") ?? "") }
        }
        #expect(broken == ["Kafka", "Redis"])
    }
}
