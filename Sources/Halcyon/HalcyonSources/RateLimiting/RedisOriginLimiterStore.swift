import Redis

/// A limiter store that counts the loads of all workers in Redis, timed by the clock of Redis. Atomic scripts implement
/// the logic of ``OriginCircuitBreaker``.
struct RedisOriginLimiterStore: OriginLimiterStore {
    private let redis: RedisClient
    private let limits: OriginLimits

    /// Creates a store. The caller closes the client.
    init(_ redis: RedisClient, _ limits: OriginLimits) {
        self.redis = redis
        self.limits = limits
    }

    func acquire(_ origin: Origin, load: String) async throws -> OriginAnswer {
        let reply = try await redis.run(
            Self.entering, keys: Self.keys(of: origin),
            arguments: [
                .string(load), .integer(limits.lease.wholeMilliseconds), .integer(limits.concurrency),
                .string("\(limits.rate)"), .integer(limits.burst),
            ])
        guard let parts = reply.array, parts.count == 2, let answer = parts[0].string, let time = parts[1].integer
        else {
            throw RedisError(.protocolError, "unexpected reply from the origin limiter script: \(reply)")
        }
        switch answer {
        case "go": return .go
        case "wait": return .wait(.milliseconds(time))
        default: return .resting(.milliseconds(time))
        }
    }

    func release(_ origin: Origin, load: String, of url: String, _ outcome: OriginOutcome) async throws {
        _ = try await redis.run(
            Self.leaving, keys: Self.keys(of: origin),
            arguments: [
                .string(load), .string(outcome.rawValue), .string(url), .integer(limits.failures),
                .integer(min(limits.failingURLs, limits.failures)), .integer(limits.window.wholeMilliseconds),
                .integer(limits.rest.wholeMilliseconds), .integer(limits.maximumCooldown.wholeMilliseconds),
            ])
    }

    func prolong(_ loads: [Origin: Set<String>]) async throws {
        let lease = RedisArgument.integer(limits.lease.wholeMilliseconds)
        _ = try await redis.run(
            Self.prolonging,
            onEach: loads.map { (Self.keys(of: $0), [lease] + $1.map { .string($0) }) })
    }

    private static func keys(of origin: Origin) -> [RedisArgument] {
        ["loads", "state", "recent"].map { .string("halcyon:{origin:\(origin)}:\($0)") }
    }

    // loads: a sorted set of the loads in flight, scored by the end of their leases.
    // state: a hash. tokens: content of the token bucket; at: time of that count; rest: length of the open time; until:
    // its end; probe: the load that may test the origin.
    // recent: a sorted set of the last loads, scored by their ends. A member is the name of the load, a colon and, if
    // it failed, its URL. The set is created by a failure and expires one window after the last one, so that a healthy
    // origin has none.
    // Keys expire one day after the last load. Times are in milliseconds.
    private static let entering = RedisScript(
        """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
        local state = redis.call('HMGET', KEYS[2], 'tokens', 'at', 'until', 'probe')
        local resting = tonumber(state[3])
        if resting then
            if now < resting then return {'rest', resting - now} end
            local over = state[4] and redis.call('ZSCORE', KEYS[1], state[4])
            if over then return {'rest', over - now} end
        end
        if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return {'wait', 20} end
        local rate, burst = tonumber(ARGV[4]), tonumber(ARGV[5])
        if rate > 0 then
            local tokens = tonumber(state[1]) or burst
            tokens = math.min(burst, tokens + (now - (tonumber(state[2]) or now)) * rate / 1000)
            local enough = tokens >= 1
            if enough then tokens = tokens - 1 end
            redis.call('HSET', KEYS[2], 'tokens', string.format('%.17g', tokens), 'at', now)
            redis.call('PEXPIRE', KEYS[2], 86400000)
            if not enough then return {'wait', math.ceil((1 - tokens) * 1000 / rate)} end
        end
        redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
        redis.call('PEXPIRE', KEYS[1], 86400000)
        if resting then redis.call('HSET', KEYS[2], 'probe', ARGV[1]) end
        return {'go', 0}
        """)

    private static let prolonging = RedisScript(
        """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        for i = 2, #ARGV do
            local over = redis.call('ZSCORE', KEYS[1], ARGV[i])
            if over and tonumber(over) > now then redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[i]) end
        end
        return 0
        """)

    private static let leaving = RedisScript(
        """
        local load, outcome, url, most, urls, window = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
        redis.call('ZREM', KEYS[1], load)
        local probing = redis.call('HGET', KEYS[2], 'probe') == load
        if probing then redis.call('HDEL', KEYS[2], 'probe') end
        if outcome == 'notStarted' and redis.call('HEXISTS', KEYS[2], 'tokens') == 1 then
            redis.call('HINCRBYFLOAT', KEYS[2], 'tokens', 1)
        end
        if outcome == 'unknown' or outcome == 'notStarted' or most == 0 then return 0 end
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        if redis.call('HEXISTS', KEYS[2], 'until') == 1 then
            if not probing then return 0 end
            redis.call('DEL', KEYS[3])
            if outcome == 'answered' then
                redis.call('HDEL', KEYS[2], 'rest', 'until')
                return 0
            end
        else
            if outcome == 'answered' then
                if redis.call('EXISTS', KEYS[3]) == 1 then
                    redis.call('ZADD', KEYS[3], now, load .. ':')
                    redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -(2 * most + 1))
                end
                return 0
            end
            redis.call('ZADD', KEYS[3], now, load .. ':' .. url)
            redis.call('PEXPIRE', KEYS[3], window)
            redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - window)
            redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -(2 * most + 1))
            local failed, different, seen = 0, 0, {}
            for _, member in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
                local failing = string.match(member, ':(.+)$')
                if failing then
                    failed = failed + 1
                    if not seen[failing] then different = different + 1 end
                    seen[failing] = true
                end
            end
            if failed < most or different < urls then return 0 end
        end
        local rest = tonumber(redis.call('HGET', KEYS[2], 'rest'))
        rest = math.min(rest and rest * 2 or tonumber(ARGV[7]), tonumber(ARGV[8]))
        redis.call('HSET', KEYS[2], 'rest', rest, 'until', now + rest)
        redis.call('PEXPIRE', KEYS[2], 86400000)
        return 1
        """)
}

extension Duration {
    /// The duration in milliseconds, rounded up.
    var wholeMilliseconds: Int { Int((self / .milliseconds(1)).rounded(.up)) }
}
