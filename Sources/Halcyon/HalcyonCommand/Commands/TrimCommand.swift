import Formats
import HalcyonCoordination
import HalcyonModel
import JSON
import ProgramSettings

/// `halcyon trim`: removes results until there is room.
enum TrimCommand: Subcommand {
    private static let tenant = Parameter<String?>.option(
        "tenant", .tenant, as: "NAME", help: "Whose results; without it those of jobs that name no tenant.")
    private static let bytes = Parameter<Int?>.option(
        "bytes", .byteSize(), as: "SIZE", help: "Bytes that may stay, such as 512MiB.")
    private static let pixels = Parameter<Int?>.option(
        "pixels", .integer(in: 0 ... .max), as: "N", help: "Pixels that may stay, all frames counted.")
    private static let count = Parameter<Int?>.option(
        "count", .integer(in: 0 ... .max), as: "N", help: "Results that may stay; 0 removes them all.")
    private static let json = Parameter.flag(
        "json", help: "Print what was removed and what is left as one JSON object.")

    static let command = Command(
        "trim", summary: "Remove results of a tenant, those first that jobs have not used for longest.",
        discussion: """
            Results go until those that are left are within all of the limits given; without any the limits are those of the settings \
            (cache.maximumBytes, cache.maximumPixels, cache.maximumCount). Known are the results that workers have stored since \
            one of these was set for them; hand-offs are not counted. Jobs that want a removed result have it made again.
            """, parameters: [tenant, bytes, pixels, count, json],
        examples: [
            .init("halcyon trim --bytes 100MiB", "Keep the 100 MiB that were used last."),
            .init("halcyon trim --tenant shop --count 0", "Remove all that is known of a tenant's."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        var budget = Budget(bytes: arguments[bytes], pixels: arguments[pixels], count: arguments[count])
        if !budget.isLimited { budget = configuration.options.worker.results.budget }
        guard budget.isLimited else {
            throw InputError(
                "say how much may stay (--bytes, --pixels or --count): the settings set no limit", of: arguments)
        }
        let tenant = arguments[tenant]
        let (removed, left) = try await configuration.withResults { results in
            try await results.trim(tenant, to: budget)
        }
        if arguments[json] {
            Console.printObject { writer in
                writer.member("tenant", tenant)
                writer.member("removed", removed)
                writer.member("left", left)
            }
        } else {
            Console.print("removed \(removed.text), left \(left.text)")
        }
        return .done
    }
}

extension ValueKind<String> {
    /// A tenant's name, as jobs take it.
    static var tenant: Self {
        ValueKind("1 to \(Job.longestTenant) letters, digits, dots, hyphens and underscores") {
            Job.isTenant($0) ? $0 : nil
        }
    }
}

extension BudgetSum: JSONWritable {
    /// `{"count": 3, "bytes": 40960, "pixels": 360000}`.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("count", count)
            writer.member("bytes", bytes)
            writer.member("pixels", pixels)
        }
    }

    /// For people.
    fileprivate var text: String { "\(counted(count, "result")) (\(byteText(bytes)), \(pixels) pixels)" }
}
