import Formats
import HalcyonModel

/// The objects of a result: one with its record, which contains the file or the name of another object with the file.
extension ResultStore {
    /// What the storage has of a result.
    struct ResultHead {
        let record: ResultRecord
        /// The name of the object with the file.
        let name: String
        /// True if the file has the recorded size.
        let isComplete: Bool
    }

    /// Reads what is known about a living result without its file; nil if there is none.
    func head(of key: ResultKey) async throws(StorageError) -> ResultHead? {
        guard let head = try await objectHead(ObjectName.result(key)), let record = valid(head.record, key) else {
            return nil
        }
        guard record.isNamed else {
            return ResultHead(
                record: record, name: ObjectName.result(key), isComplete: head.bytes == record.metadata.bytes)
        }
        guard let name = try await file(of: key) else { return nil }
        let bytes = try await objectHead(name)?.bytes
        return ResultHead(record: record, name: name, isComplete: bytes == record.metadata.bytes)
    }

    func objectHead(_ name: String) async throws(StorageError) -> StorageHead? {
        let storage = storage
        return try await reads.run(within: options.readTimeout) { () throws(StorageError) in
            try await storage.head(name)
        }
    }

    /// The name of the object with the file of a result, living or not, that has a name of its own; nil if there is none.
    func file(of key: ResultKey) async throws(StorageError) -> String? {
        let (name, storage) = (ObjectName.result(key), storage)
        let object: StorageObject?
        do throws(StorageError) {
            object = try await reads.run(within: options.readTimeout) { () throws(StorageError) in
                try await storage.read(name, upTo: ObjectName.longest)
            }
        } catch let error where error.kind == .tooLarge {
            // It contains the file itself.
            return nil
        }
        // An object of another program or version has no record for us.
        guard let object, let record = try? ResultRecord(json: object.record), record.isNamed else { return nil }
        return ObjectName.file(object.body)
    }

    /// Deletes a result and its file.
    func delete(_ key: ResultKey) async throws(StorageError) {
        if options.names != nil, let file = try await file(of: key) { try await delete([file]) }
        try await delete([ObjectName.result(key)])
    }

    /// The name that the file of a result gets; nil for none.
    func fileName(of result: StoredResult) -> String? {
        result.source.flatMap { options.names?.name(of: result.key, result.metadata, from: $0) }
    }

    /// The names of the objects with the files of results that have names of their own.
    func files(of keys: [ResultKey]) async throws(StorageError) -> [String] {
        var files: [String] = []
        for start in stride(from: 0, to: keys.count, by: 16) {
            let found = await withTaskGroup(of: Result<String?, StorageError>.self) { group in
                for key in keys[start..<min(start + 16, keys.count)] {
                    group.addTask {
                        do throws(StorageError) {
                            return .success(try await self.file(of: key))
                        } catch {
                            return .failure(error)
                        }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            for file in found { if let file = try file.get() { files.append(file) } }
        }
        return files
    }
}
