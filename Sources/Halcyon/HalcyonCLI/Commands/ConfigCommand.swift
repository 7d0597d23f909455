import JSON
import ProgramSettings

/// `halcyon config`: prints the effective settings.
enum ConfigCommand: Subcommand {
    private static let json = Parameter.flag("json", help: "Print one JSON object.")
    private static let explain = Parameter.flag("explain", help: "Explain each setting.")

    static let command = Command(
        "config", summary: "Print the effective settings and the source of each. Secrets are masked.",
        parameters: [json, explain],
        examples: [
            .init("halcyon config --explain", "List all settings with explanations."),
            .init("HALCYON_WORKER_GRACE=10s halcyon config", "Check that an environment variable takes effect."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        // Valid settings can be invalid in combination. Report what would keep a worker or a gateway from starting.
        _ = try configuration.worker()
        _ = try configuration.gateway()
        let settings = configuration.settings
        if arguments[json] {
            Console.printObject { writer in
                for line in settings.listing {
                    writer.name(line.name)
                    writer.object { writer in
                        writer.member("value", line.value)
                        writer.member("origin", "\(line.origin)")
                    }
                }
            }
            return .done
        }
        let schema = ProgramOptions.schema
        let explained = Dictionary(uniqueKeysWithValues: schema.settings.map { ($0.name, $0) })
        let width = settings.listing.map(\.name.count).max() ?? 0
        for line in settings.listing {
            Console.print("\(line.name.padded(to: width))  \(line.value.isEmpty ? "-" : line.value)  (\(line.origin))")
            if arguments[explain], let setting = explained[line.name] {
                let variables = ([schema.variable(for: setting.name)] + setting.fallbacks).joined(separator: ", else ")
                Console.print("    \(setting.explanation) Expected: \(setting.expectation). \(variables)")
            }
        }
        return .done
    }
}
