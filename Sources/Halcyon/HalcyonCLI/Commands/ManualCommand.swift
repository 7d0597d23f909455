import Formats
import ProgramSettings

/// `halcyon manual`: prints or writes the manual pages.
enum ManualCommand: Subcommand {
    private static let page = Parameter<String?>.optionalArgument(
        "PAGE", .text, help: "The page to print, such as halcyon-submit or halcyon.yaml. Default: halcyon.")
    private static let directory = Parameter<String?>.option(
        "directory", .folder, as: "DIR", help: "Write all pages into the subfolders man1 and man5 of this folder.")

    static let command = Command(
        "manual", summary: "Print a manual page, or write all of them to a folder.",
        discussion: """
            The pages are generated from the same declarations as --help, in the macros of man(7). `make install` and \
            the Debian package install them.
            """, parameters: [page, directory],
        examples: [
            .init("halcyon manual halcyon-submit | man -l -", "Read the page of a command without installing it."),
            .init("halcyon manual --directory ~/.local/share/man", "Install all pages for this user."),
        ])

    /// All pages of the manual.
    private static var pages: [ManualPage] {
        Program.command.manualPages(details) + [
            ProgramOptions.schema.manualPage(
                "halcyon.yaml", summary: "Settings of Halcyon.", discussion: settings, example: example,
                related: ["halcyon(1)", "halcyon-config(1)"], details)
        ]
    }

    static let connection = Connection.none

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        guard let directory = arguments[directory] else {
            Console.print(try find(arguments[page] ?? Program.command.name).text)
            return .done
        }
        guard arguments[page] == nil else { throw InputError("--directory writes all pages; leave out PAGE") }
        for page in pages {
            let folder = "\(directory)/man\(page.section)"
            try await Files.makeFolder(folder)
            try await Files.write(Array(page.text.utf8), to: "\(folder)/\(page.fileName)")
        }
        return .done
    }

    private static func find(_ name: String) throws(InputError) -> ManualPage {
        let pages = pages
        if let page = pages.first(where: { $0.name == name || $0.name == "\(Program.command.name)-\(name)" }) {
            return page
        }
        let hint = suggestion(for: name, among: pages.map(\.name)).map { "; did you mean \($0)?" } ?? ""
        throw InputError("no manual page '\(name)'\(hint)")
    }

    private static let details = ManualDetails(
        product: "Halcyon \(Version.number)", title: "Halcyon Manual",
        environment: [
            .init("HALCYON_CONFIG", "The YAML file with settings, unless `--config` names one."),
            .init(
                "HALCYON_KAFKA_BROKERS, HALCYON_REDIS_URL, …",
                "Settings. `halcyon.yaml`(5) lists the variable of each."),
            .init("NO_COLOR", "If set, output on a terminal has no color."),
        ],
        exitStatuses: ExitCode.meanings.map { codes, meaning in
            .init(codes, "\(meaning.prefix(1).uppercased())\(meaning.dropFirst()).")
        },
        files: [.init("/etc/default/halcyon", "Environment variables of the systemd services.")],
        related: ["halcyon.yaml(5)"])

    private static let settings = """
        Settings come from flags, environment variables, a YAML file and defaults, in this order of precedence. The \
        file is the one that `--config` or HALCYON_CONFIG names. There is no default file.

        In the file, the parts of a name may be nested, or joined by dots: `worker.grace: 30s`. On the command line, \
        any setting can be given as `--set NAME=VALUE`. `halcyon config --explain` prints the effective value of each \
        setting and where it comes from.

        An unknown name or an invalid value is an error, and the program exits with 2.
        """
    private static let example = """
        kafka:
          brokers: [kafka-1:9092, kafka-2:9092]
          properties:
            security.protocol: ssl
        redis.url: redis://redis:6379
        http:
          listen: [127.0.0.1:9464]
        """
}
