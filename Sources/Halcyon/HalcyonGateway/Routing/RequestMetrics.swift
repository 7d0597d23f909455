import HTTPServer
import Telemetry

/// What a gateway counts of requests, by the routes it has: paths as they came have no bound.
struct RequestMetrics: Sendable {
    /// Of one route.
    private struct Entry: Sendable {
        /// By the first digit of the status, from 1 on.
        let classes: [Counter]
        let duration: Histogram

        init(_ metrics: Metrics, route: String) {
            classes = (1...5).map {
                metrics.counter(
                    "halcyon_gateway_requests_total",
                    help: "Requests that were answered, by route and class of status.",
                    labels: ["route": route, "status": "\($0)xx"])
            }
            duration = metrics.histogram(
                "halcyon_gateway_request_duration_seconds",
                help:
                    "Time from a request's head to the head of its answer; what the caller asks to wait is part of it.",
                labels: ["route": route])
        }
    }

    private let routes: [Entry]
    /// Requests that have no route.
    private let others: Entry
    private let underWay: Gauge

    init(_ metrics: Metrics, _ routes: [Route]) {
        self.routes = routes.map { Entry(metrics, route: $0.description) }
        others = Entry(metrics, route: "none")
        underWay = metrics.gauge("halcyon_gateway_requests_under_way", help: "Requests that wait for their answer.")
    }

    /// Counts what becomes of a request.
    /// - Parameter route: its place in the list of routes; nil for none.
    func counted(_ reply: HTTPServer.Reply, route: Int?, since began: ContinuousClock.Instant) -> HTTPServer.Reply {
        let entry = route.map { routes[$0] } ?? others
        switch reply {
        case .now(let response): count(response.status, entry, began)
        case .shared(let response): count(response.status, entry, began)
        case .later(let work):
            underWay.add(1)
            return .later {
                defer { underWay.add(-1) }
                do {
                    let response = try await work()
                    count(response.status, entry, began)
                    return response
                } catch {
                    // The server answers what is thrown here with an error of its own.
                    count(500, entry, began)
                    throw error
                }
            }
        }
        return reply
    }

    private func count(_ status: Int, _ entry: Entry, _ began: ContinuousClock.Instant) {
        entry.classes[min(max(status / 100, 1), 5) - 1].add()
        entry.duration.observe(began.duration(to: .now))
    }
}
