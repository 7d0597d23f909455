import HalcyonCluster
import HalcyonWire
import Kafka
import Redis

/// Hears from the events how the jobs of a batch end, and writes their images into a folder if that is wanted.
struct Listening: Sendable {
    let batch: Batch
    let reader: TopicReader
    /// Where images are written and read from; nil when they are not wanted.
    let gallery: Gallery?

    /// Goes on until the task is cancelled.
    /// - Throws: ``KafkaError`` for what does not mend by itself.
    func run() async throws(KafkaError) {
        var records = reader.makeAsyncIterator()
        while let record = try await records.next() {
            guard let key = record.key, let index = batch.index(ofKey: key), let value = record.value,
                let event = EventView(json: value), let ending = event.ending
            else { continue }
            switch ending {
            case .failed(let code, let message): batch.end(index, .failed(code: code, message: message))
            case .cancelled: batch.end(index, .cancelled)
            case .superseded(let generation): batch.end(index, .superseded(by: generation))
            case .ready(let outputs, let failures):
                batch.end(index, await outcome(index, outputs, failures, event.total))
            }
        }
    }

    private func outcome(
        _ index: Int, _ outputs: [EventView.Output], _ failures: [EventView.VariantFailure], _ milliseconds: Double?
    ) async -> Batch.Outcome {
        do {
            let files = try await gallery?.write(outputs, ofJob: index)
            return .ready(outputs, failures: failures, milliseconds: milliseconds, files: files)
        } catch {
            return .notWritten(outputs, reason: "\(error)")
        }
    }
}

/// A folder of images that are ready.
struct Gallery: Sendable {
    let folder: String
    let results: ResultTier
    /// What the names of each job's files begin with, no two alike.
    let stems: [String]

    /// Writes the images of one job, from the event if they are in it, else from Redis.
    /// - Returns: the files' paths, in the order of the variants.
    /// - Throws: ``RedisError``, ``FileError``, ``Trouble``.
    func write(_ outputs: [EventView.Output], ofJob index: Int) async throws -> [String] {
        var images: [FileNames.Image] = []
        for output in outputs {
            guard let bytes = try await bytes(of: output) else {
                throw Trouble("the result has gone from Redis already")
            }
            images.append(
                FileNames.Image(bytes: bytes, width: output.width, height: output.height, format: output.format))
        }
        let paths = FileNames.names(of: images, stem: stems[index]).map { "\(folder)/\($0)" }
        for (image, path) in zip(images, paths) { try await Files.write(image.bytes, to: path) }
        return paths
    }

    private func bytes(of output: EventView.Output) async throws -> [UInt8]? {
        if let data = output.data { return data }
        return try await results.read(output.key)?.body
    }
}
