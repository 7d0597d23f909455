import HalcyonCoordination
import Redis

/// What is done to one result in one step. Each script has the result's key, and behind it that of its source's index: the names of all
/// results of the source, the parts of their keys behind the braces, by their expiry. A purge finds them there. Hand-offs are not in it; what had to make room in a
/// budget stays in it until it would have expired, which does no harm.
///
/// Times are milliseconds since 1970 by the server's own clock; `storedAt` is a ``StoringMoment``.
enum ResultScripts {
    /// The keys of the scripts for a result.
    static func keys(of result: String) -> [RedisArgument] {
        [.string(result), .string(SourceKeys(of: result).results)]
    }

    private static let indexing = """
        local name = string.match(KEYS[1], '}:(.*)$')
        local function tidy()
          local time = redis.call('TIME')
          redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', time[1] * 1000 + math.floor(time[2] / 1000))
        end
        local function leave()
          redis.call('ZREM', KEYS[2], name)
          tidy()
        end
        local function enter(expires)
          redis.call('ZADD', KEYS[2], expires, name)
          tidy()
          local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
          if last then redis.call('PEXPIREAT', KEYS[2], string.format('%.0f', last)) end
        end

        """

    /// KEYS: result, index, fences. ARGV: milliseconds to live, body, facts, rule, fence, item, fence of the oldest that it was made from, its maker's
    /// `traceparent` or nothing. Gives `expiresAt` and `storedAt`; nil when something newer is there, or the result has been purged since its making began. Below 0 the
    /// fence is not looked at.
    ///
    /// All fields are written, so nothing of an older result stays; only an expiry that another rule gave does, where it is later.
    /// HSET comes before all other writing: once a script has written, Redis lets it go on past maxmemory.
    static let store = RedisScript(
        indexing + Fencing.check + StoringMoment.lua + """
            local fence = tonumber(ARGV[5])
            if fence >= 0 and isFencedOut(KEYS[3], KEYS[1], ARGV[6], fence, tonumber(ARGV[7])) then return false end
            local expires, rule = math.floor(now) + ARGV[1], ARGV[4]
            local old = redis.call('HMGET', KEYS[1], 'expiresAt', 'storedAt', 'rule', 'trace')
            if old[1] and old[3] ~= rule and tonumber(old[1]) > expires then expires, rule = tonumber(old[1]), old[3] or '' end
            expires = string.format('%.0f', expires)
            local stored = stamp(old[2])
            redis.call(
              'HSET', KEYS[1], 'body', ARGV[2], 'facts', ARGV[3], 'expiresAt', expires, 'storedAt', stored, 'rule', rule,
              'fence', ARGV[5])
            if ARGV[8] ~= '' then redis.call('HSET', KEYS[1], 'trace', ARGV[8])
            elseif old[4] then redis.call('HDEL', KEYS[1], 'trace') end
            redis.call('PEXPIREAT', KEYS[1], expires)
            if fence >= 0 then enter(expires) end
            return {expires, stored}
            """)

    /// ARGV: milliseconds that the rule gives, rule. Gives `expiresAt`; nil when the result is gone.
    static let extend = RedisScript(
        indexing + """
            local old = redis.call('HMGET', KEYS[1], 'expiresAt', 'storedAt')
            if not old[1] or not old[2] then return false end
            local reach = math.floor(tonumber(old[2])) + ARGV[1]
            if reach <= tonumber(old[1]) then return old[1] end
            local expires = string.format('%.0f', reach)
            redis.call('HSET', KEYS[1], 'expiresAt', expires, 'rule', ARGV[2])
            redis.call('PEXPIREAT', KEYS[1], expires)
            enter(expires)
            return expires
            """)

    /// ARGV: rule. Gives `storedAt` of what was removed; nil when nothing was.
    static let removeOfRule = RedisScript(
        indexing + """
            local old = redis.call('HMGET', KEYS[1], 'rule', 'storedAt')
            if old[1] ~= ARGV[1] then return false end
            redis.call('UNLINK', KEYS[1])
            leave()
            return old[2]
            """)

    /// Gives body and facts, for the last time.
    static let take = RedisScript(
        """
        local fields = redis.call('HMGET', KEYS[1], 'body', 'facts')
        redis.call('UNLINK', KEYS[1])
        return fields
        """)
}
