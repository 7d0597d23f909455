import Concurrency
import Glibc
import HalcyonModel
import HalcyonSources

/// Loads the URLs of standard input, one per line, and prints for each the outcome and the addresses that were
/// connected to: `URL TAB ok or a failure's code TAB addresses`.
///
/// It runs in a network namespace in which every address is local, so that all connections arrive here and are seen at
/// the socket.
@main struct AddressRunner {
    static func main() async throws {
        func list(_ name: String) -> [AddressRule] {
            let entries = getenv(name).map { String(cString: $0).split(separator: ",").map(String.init) } ?? []
            return entries.map { AddressRule($0)! }
        }
        let listener = Listener(port: 8080)
        NameServer().start()
        var options = SourceOptions()
        options.policy = AddressPolicy(allow: list("ALLOW"), deny: list("DENY"))
        // A busy machine must not end a load. The name server has up to half a minute (resolv.conf).
        (options.connectTimeout, options.timeout, options.stallTimeout) = (.seconds(120), .seconds(600), .seconds(600))
        let pool = ThreadPool(name: "unused", threads: 1)
        while let line = readLine() {
            // A loader for each URL: neither connections nor names are reused.
            let loader = SourceLoader(options, drawingOn: pool)
            let outcome: String
            do {
                _ = try await loader.fetch(SourceRequest(Source(line)))
                outcome = "ok"
            } catch let failure as JobError {
                outcome = failure.code.rawValue
            }
            await loader.close()
            print("\(line)\t\(outcome)\t\(listener.arrivals().joined(separator: " "))")
        }
        exit(0)
    }
}
