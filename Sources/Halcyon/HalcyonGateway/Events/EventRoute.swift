extension Route {
    /// `GET /v1/events`: the event stream. By a signed URL as well, since a browser's `EventSource` sends no key.
    static func events(_ feed: EventFeed, _ places: StreamPlaces) -> Route {
        Route("GET", "/v1/events", for: .read, acceptsSignature: true, kind: .stream) { call in
            let query = try EventQuery(call.request)
            return try places.stream { try await EventStream(feed: feed, query: query, writer: $0).run() }
        }
    }
}
