import Glibc
import Measuring

/// What HTTP costs: `GatewayBenchmark HALCYON FOLDER [ROUNDS [PROCESSORS]]`.
///
/// HALCYON is the executable, run as a gateway and a worker on Apache Kafka (KAFKA_HOME; the mock cluster without), a redis-server and an
/// nginx that serves FOLDER's photographs. In rounds that take turns, `wrk` asks the gateway for stored images and another nginx for the
/// same files; then renderings that miss are asked for by Kafka and by `/v1/render`.
/// With PROCESSORS, a list such as `0`, the worker has those; whoever runs this on the others (taskset(1)) sees what the worker can do while
/// nothing else takes its time.
@main struct GatewayBenchmark {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 2, let rounds = arguments.count > 3 ? Int(arguments[3]) : 5, rounds > 0 else {
            print(
                "usage: GatewayBenchmark HALCYON FOLDER [ROUNDS [PROCESSORS]]   FOLDER holds JPEG photographs of some 1600 pixels"
            )
            exit(2)
        }
        let fixture = try await BenchmarkFixture(
            executable: arguments[1], photographs: try jpegs(in: arguments[2]),
            workerOn: arguments.count > 4 ? arguments[4] : nil)
        do {
            try await Stored(fixture).measure(rounds: rounds)
            try await Renderings(fixture).measure(rounds: rounds)
        } catch {
            await fixture.remove()
            throw error
        }
        await fixture.remove()
    }
}
