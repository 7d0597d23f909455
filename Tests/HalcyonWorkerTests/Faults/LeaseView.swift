import Redis

/// What the leases of a redis-server were at one moment, and which products have been stored since it was last looked.
struct LeaseView: Sendable {
    /// Who makes a product.
    struct Held: Sendable {
        let process: String
        let fence: Int
    }

    /// A product as it was stored once.
    struct Version: Sendable {
        let product: String
        let fence: Int
        let storedAt: String
        /// The SHA-1 of its bytes.
        let digest: String
    }

    /// The leases, by the keys of their products.
    let held: [String: Held]
    /// The processes that wait for a product, by its key.
    let waiters: [String: Set<String>]
    /// What was stored since the last look.
    let stored: [Version]

    /// Looks: one step for the server. What it has told already it remembers in a hash of its own.
    static func look(_ redis: RedisClient) async throws -> LeaseView {
        let reply = try await redis.run(script, keys: [.string("watch:seen")]).array ?? []
        guard reply.count == 3, let leases = reply[0].array, let waiters = reply[1].array, let stored = reply[2].array
        else { throw RedisError(.protocolError, "not a view: \(reply)") }
        var held: [String: Held] = [:]
        for texts in leases.map(\.texts) where texts.count == 2 {
            let parts = texts[1].split(separator: ":")
            held[texts[0]] = Held(process: String(parts[0]), fence: Int(parts[2]) ?? 0)
        }
        var waiting: [String: Set<String>] = [:]
        for texts in waiters.map(\.texts) where !texts.isEmpty {
            waiting[texts[0]] = Set(texts.dropFirst().map { String($0.prefix { $0 != ":" }) })
        }
        return LeaseView(
            held: held, waiters: waiting,
            stored: stored.map(\.texts).filter { $0.count == 4 }.map {
                Version(product: $0[0], fence: Int($0[1]) ?? -1, storedAt: $0[2], digest: $0[3])
            })
    }

    /// Who has not asked for two and a half seconds waits no more, whatever the list says: one asks each second.
    private static let script = RedisScript(
        """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        local leases, waiters, stored = {}, {}, {}
        local function product(key, part) return (string.gsub(key, '}:' .. part .. ':', '}:', 1)) end
        for _, key in ipairs(redis.call('KEYS', 'halcyon:{*}:*')) do
          if string.find(key, '}:lease:', 1, true) then
            local holder = redis.call('GET', key)
            if holder then leases[#leases + 1] = {product(key, 'lease'), holder} end
          elseif string.find(key, '}:waiters:', 1, true) then
            local list = redis.call('ZRANGEBYSCORE', key, now - 2500, '+inf')
            table.insert(list, 1, product(key, 'waiters'))
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
