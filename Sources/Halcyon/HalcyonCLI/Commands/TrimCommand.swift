import Formats
import HalcyonCoordination
import HalcyonModel
import JSON
import ProgramSettings

/// `halcyon trim`: removes the least recently used results until the rest is within limits.
enum TrimCommand: Subcommand {
    private static let tenant = Parameter<String?>.option(
        "tenant", .tenant, as: "NAME",
        help: "The tenant whose results to trim. Default: the results of jobs without a tenant.")
    private static let bytes = Parameter<Int?>.option(
        "bytes", .byteSize(), as: "SIZE", help: "Maximum bytes to retain, such as 512MiB.")
    private static let pixels = Parameter<Int?>.option(
        "pixels", .integer(in: 0 ... .max), as: "N", help: "Maximum pixels to retain, counting all frames.")
    private static let count = Parameter<Int?>.option(
        "count", .integer(in: 0 ... .max), as: "N", help: "Maximum number of results to retain. 0 removes all.")
    private static let json = Parameter.flag(
        "json", help: "Print the removed and the remaining amounts as one JSON object.")

    static let command = Command(
        "trim", summary: "Remove the least recently used results of a tenant.",
        discussion: """
            Results are removed until the rest is within all given limits. Without options the limits come from the \
            settings (cache.maximumBytes, cache.maximumPixels, cache.maximumCount). Only results that workers stored \
            while one of these settings was in effect are tracked. Read-once results are not counted. Jobs that need a \
            removed result render it again.
            """, parameters: [tenant, bytes, pixels, count, json],
        examples: [
            .init("halcyon trim --bytes 100MiB", "Retain the 100 MiB that were used most recently."),
            .init("halcyon trim --tenant shop --count 0", "Remove all tracked results of a tenant."),
        ])

    static let connection = Connection.redis

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        var budget = Budget(bytes: arguments[bytes], pixels: arguments[pixels], count: arguments[count])
        if !budget.isLimited { budget = configuration.options.worker.results.budget }
        guard budget.isLimited else {
            throw InputError(
                "no limit given; use --bytes, --pixels or --count, because the settings have none", of: arguments)
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
    /// The name of a tenant, with the rules of the job field.
    static var tenant: Self {
        ValueKind("1 to \(Job.longestTenant) letters, digits, dots, hyphens and underscores") {
            Job.isTenant($0) ? $0 : nil
        }
    }
}

extension QuotaUsage: JSONWritable {
    /// Writes `{"count": 3, "bytes": 40960, "pixels": 360000}`.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("count", count)
            writer.member("bytes", bytes)
            writer.member("pixels", pixels)
        }
    }

    /// A text such as `3 results (41.0 kB, 360000 pixels)`.
    fileprivate var text: String { "\(counted(count, "result")) (\(byteText(bytes)), \(pixels) pixels)" }
}
