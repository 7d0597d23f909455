import Redis

/// The leases in a redis-server at one moment, and the sources and results stored since the previous snapshot.
struct LeaseSnapshot: Sendable {
    /// The holder of a lease.
    struct Holder: Sendable {
        let process: String
        let fence: Int
    }

    /// A stored version of a source or result.
    struct Version: Sendable {
        let key: String
        let fence: Int
        let storedAt: String
        /// The SHA-1 of the body.
        let digest: String
    }

    /// The holders of leases, by the key of the source or result.
    let holders: [String: Holder]
    /// The processes that wait for a source or result, by its key.
    let waiters: [String: Set<String>]
    /// The versions stored since the previous snapshot.
    let stored: [Version]

    /// Takes a snapshot with one script. The script records the versions that it has reported in a separate hash.
    static func take(_ redis: RedisClient) async throws -> LeaseSnapshot {
        let reply = try await redis.run(script, keys: [.string("watch:seen")]).array ?? []
        guard reply.count == 3, let leases = reply[0].array, let waiters = reply[1].array, let stored = reply[2].array
        else { throw RedisError(.protocolError, "not a snapshot: \(reply)") }
        var holders: [String: Holder] = [:]
        for texts in leases.map(\.texts) where texts.count == 2 {
            let parts = texts[1].split(separator: ":")
            holders[texts[0]] = Holder(process: String(parts[0]), fence: Int(parts[2]) ?? 0)
        }
        var waiting: [String: Set<String>] = [:]
        for texts in waiters.map(\.texts) where !texts.isEmpty {
            waiting[texts[0]] = Set(texts.dropFirst().map { String($0.prefix { $0 != ":" }) })
        }
        let versions = stored.map(\.texts).filter { $0.count == 4 }.map { (texts: [String]) -> Version in
            Version(key: texts[0], fence: Int(texts[1]) ?? -1, storedAt: texts[2], digest: texts[3])
        }
        return LeaseSnapshot(holders: holders, waiters: waiting, stored: versions)
    }

    /// A process that has not asked for two and a half seconds no longer waits, even if it is listed, because waiters
    /// ask every second.
    private static let script = RedisScript(
        """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        local leases, waiters, stored = {}, {}, {}
        local function target(key, part) return (string.gsub(key, '}:' .. part .. ':', '}:', 1)) end
        for _, key in ipairs(redis.call('KEYS', 'halcyon:{*}:*')) do
          if string.find(key, '}:lease:', 1, true) then
            local holder = redis.call('GET', key)
            if holder then leases[#leases + 1] = {target(key, 'lease'), holder} end
          elseif string.find(key, '}:waiters:', 1, true) then
            local list = redis.call('ZRANGEBYSCORE', key, now - 2500, '+inf')
            table.insert(list, 1, target(key, 'waiters'))
            waiters[#waiters + 1] = list
          elseif redis.call('TYPE', key).ok == 'hash' then
            local fields = redis.call('HMGET', key, 'fence', 'storedAt')
            local mark = (fields[1] or '') .. ' ' .. (fields[2] or '')
            if fields[1] and fields[2] and redis.call('HGET', KEYS[1], key) ~= mark then
              redis.call('HSET', KEYS[1], key, mark)
              stored[#stored + 1] = {key, fields[1], fields[2], redis.sha1hex(redis.call('HGET', key, 'body') or '')}
            end
          end
        end
        return {leases, waiters, stored}
        """)
}

extension RedisValue {
    fileprivate var texts: [String] { array?.compactMap(\.string) ?? [] }
}
