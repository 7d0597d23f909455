import Kafka

extension EventStream {
    /// Sends from Kafka what the feed does not remember, up to where it does.
    func replay(_ output: inout EventOutput, _ end: StreamEnd) async throws -> EventSubscription {
        while true {
            try Task.checkCancellation()
            do {
                let from = output.cursor.offsets
                let reader = try await keepingAlive {
                    try await TopicReader.open(
                        feed.topic, from: .offsets(from), properties: feed.properties, tellsEnds: true)
                }
                let result: Result<EventSubscription, any Error>
                do {
                    result = .success(try await replay(reader, &output, end))
                } catch {
                    result = .failure(error)
                }
                await reader.close()
                return try result.get()
            } catch let error as KafkaError {
                feed.log.info("missed events are not read yet", ["error": "\(error)"])
                try await keepingAlive { try await Task.sleep(for: .seconds(1)) }
            }
        }
    }

    private func replay(
        _ reader: TopicReader, _ output: inout EventOutput, _ end: StreamEnd
    ) async throws -> EventSubscription {
        let start = TopicCursor(reader.startingPlaces(of: output.cursor))
        if !start.hasReached(output.cursor) || !output.cursor.hasReached(start) {
            feed.metrics.gaps.add()
            try await output.gap(start)
        }
        while true {
            if let subscription = feed.hub.subscribe(at: output.cursor, isReplayed: true, drop: { end.drop($0) }) {
                return subscription
            }
            guard let batch = try await keepingAlive({ try await reader.nextBatch() }) else {
                throw CancellationError()
            }
            var here = output.cursor
            let records = batch.records.compactMap { record -> FeedRecord? in
                here.pass(record.partition, record.offset)
                return record.value.map { FeedRecord(record, $0, here) }
            }
            try await output.send(records)
            for (partition, end) in batch.ends { here.pass(partition, end - 1) }
            output.advance(to: here)
        }
    }
}

extension TopicReader {
    /// Where a client that has come so far goes on: where it was, or with the oldest record where what follows is gone. Offsets that the topic
    /// has never had are another topic's of the same name, which was there before.
    fileprivate nonisolated func startingPlaces(of cursor: TopicCursor) -> [Int32: Int64] {
        Dictionary(
            uniqueKeysWithValues: oldestOffsets.map { partition, oldest in
                let wanted = cursor[partition]
                return (partition, oldest <= wanted && wanted <= endOffsets[partition] ?? 0 ? wanted : oldest)
            })
    }
}
