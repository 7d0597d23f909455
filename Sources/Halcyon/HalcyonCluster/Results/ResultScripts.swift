import Redis

/// What is done to one result in one step. Each script has the result's key alone.
///
/// Times are milliseconds since 1970 by the server's own clock. `storedAt` has decimals and grows with each storing, so that it tells
/// one storing of a key from the next.
enum ResultScripts {
    /// ARGV: milliseconds to live, body, facts, rule. Gives `expiresAt` and `storedAt`.
    ///
    /// All fields are written, so nothing of an older result stays; only an expiry that another rule gave does, where it is later.
    /// HSET comes before all other writing: once a script has written, Redis lets it go on past maxmemory.
    static let store = RedisScript(
        """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + time[2] / 1000
        local expires, rule = math.floor(now) + ARGV[1], ARGV[4]
        local old = redis.call('HMGET', KEYS[1], 'expiresAt', 'storedAt', 'rule')
        if old[1] and old[3] ~= rule and tonumber(old[1]) > expires then expires, rule = tonumber(old[1]), old[3] or '' end
        if old[2] and tonumber(old[2]) > now - 0.0005 then now = old[2] + 0.001 end
        expires = string.format('%.0f', expires)
        local stored = string.format('%.3f', now)
        redis.call('HSET', KEYS[1], 'body', ARGV[2], 'facts', ARGV[3], 'expiresAt', expires, 'storedAt', stored, 'rule', rule)
        redis.call('PEXPIREAT', KEYS[1], expires)
        return {expires, stored}
        """)

    /// ARGV: milliseconds that the rule gives, rule. Gives `expiresAt`; nil when the result is gone.
    static let extend = RedisScript(
        """
        local old = redis.call('HMGET', KEYS[1], 'expiresAt', 'storedAt')
        if not old[1] or not old[2] then return false end
        local reach = math.floor(tonumber(old[2])) + ARGV[1]
        if reach <= tonumber(old[1]) then return old[1] end
        local expires = string.format('%.0f', reach)
        redis.call('HSET', KEYS[1], 'expiresAt', expires, 'rule', ARGV[2])
        redis.call('PEXPIREAT', KEYS[1], expires)
        return expires
        """)

    /// ARGV: rule. Gives `storedAt` of what was removed; nil when nothing was.
    static let removeOfRule = RedisScript(
        """
        local old = redis.call('HMGET', KEYS[1], 'rule', 'storedAt')
        if old[1] ~= ARGV[1] then return false end
        redis.call('UNLINK', KEYS[1])
        return old[2]
        """)

    /// ARGV: `storedAt`. Gives how many were removed: none when it has been stored anew.
    static let removeStored = RedisScript(
        """
        if redis.call('HGET', KEYS[1], 'storedAt') ~= ARGV[1] then return 0 end
        return redis.call('UNLINK', KEYS[1])
        """)

    /// Gives body and facts, for the last time.
    static let take = RedisScript(
        """
        local fields = redis.call('HMGET', KEYS[1], 'body', 'facts')
        redis.call('UNLINK', KEYS[1])
        return fields
        """)
}
