extension RedisClient {
    /// What one master had to say.
    public struct Word: Sendable {
        /// Who said it.
        public let master: RedisAddress
        /// Its reply, or what kept that from coming.
        public let outcome: Result<RedisValue, RedisError>
    }

    /// Sends one command to every master that serves slots, all at once; to a single server as ``send(_:)`` does.
    /// - Returns: a word of each, in the order of ``masters()``.
    /// - Throws: what kept the masters from being known.
    public func sendToEveryMaster(_ command: [RedisArgument]) async throws(RedisError) -> [Word] {
        let masters = try await masters()
        return await withTaskGroup(of: (Int, Word).self) { group in
            for (index, master) in masters.enumerated() {
                group.addTask {
                    let outcome: Result<RedisValue, RedisError>
                    do throws(RedisError) {
                        outcome = .success(try await self.send(command, to: master))
                    } catch {
                        outcome = .failure(error)
                    }
                    return (index, Word(master: master, outcome: outcome))
                }
            }
            var words: [Int: Word] = [:]
            for await (index, word) in group { words[index] = word }
            return masters.indices.compactMap { words[$0] }
        }
    }
}
