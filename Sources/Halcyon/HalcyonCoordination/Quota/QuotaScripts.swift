import Redis

/// The atomic operations on a quota. All scripts except ``removeStored`` have the four keys of the quota, which are in
/// one hash slot:
///
/// | key | contents |
/// |---|---|
/// | `used` | the entries by their last use, a number that grows with each use |
/// | `expiry` | the entries by their expiry, in milliseconds since 1970 |
/// | `cost` | `storedAt`, bytes and pixels of each entry, separated by spaces |
/// | `sum` | the total `bytes` and `pixels`, and the number of `uses` |
///
/// The keys expire with the last entry. If Redis has evicted some of them, all are reset.
enum QuotaScripts {
    /// The maximum number of entries removed in one run, for expired and for evicted ones each.
    static let step = 200

    /// ARGV: limits of bytes, pixels and count (negative for none), key, storedAt, bytes, pixels, expiresAt. Returns
    /// the same as ``trim``.
    static let enter = RedisScript(
        common + """
            reap()
            local key, stored = ARGV[4], ARGV[5]
            local record = redis.call('HGET', cost, key)
            -- Of two who stored it, the later one may have come here first.
            if not record or tonumber(string.match(record, '^%S+')) <= tonumber(stored) then
              take(key)
              redis.call('HSET', cost, key, stored .. ' ' .. ARGV[6] .. ' ' .. ARGV[7])
              redis.call('ZADD', expiry, ARGV[8], key)
              redis.call('ZADD', used, redis.call('HINCRBY', sum, 'uses', 1), key)
              redis.call('HINCRBY', sum, 'bytes', ARGV[6])
              redis.call('HINCRBY', sum, 'pixels', ARGV[7])
            end
            return makeRoom()
            """)

    /// ARGV: limits of bytes, pixels and count (negative for none). Returns whether there is more to remove, the
    /// remaining bytes, pixels and count, and then key, storedAt, bytes and pixels of each evicted entry.
    static let trim = RedisScript(common + "reap()\nreturn makeRoom()")

    /// ARGV: key, expiresAt.
    static let extend = RedisScript(
        common + """
            local known = redis.call('ZSCORE', expiry, ARGV[1])
            if known and tonumber(known) < tonumber(ARGV[2]) then
              redis.call('ZADD', expiry, ARGV[2], ARGV[1])
              keep()
            end
            """)

    /// ARGV: key, storedAt. An entry that was stored again meanwhile stays.
    static let strike = RedisScript(
        common + """
            local record = redis.call('HGET', cost, ARGV[1])
            if record and tonumber(string.match(record, '^%S+')) <= tonumber(ARGV[2]) then
              take(ARGV[1])
              keep()
            end
            """)

    /// ARGV: keys, the most recently used one last. Unknown keys are ignored.
    static let use = RedisScript(
        common + """
            if redis.call('EXISTS', sum) == 0 then return end
            local uses = redis.call('HINCRBY', sum, 'uses', #ARGV) - #ARGV
            for place, key in ipairs(ARGV) do redis.call('ZADD', used, 'XX', uses + place, key) end
            """)

    /// KEYS: an entry. ARGV: `storedAt`. Returns the number of removed keys, 0 if the entry was stored again.
    static let removeStored = RedisScript(
        """
        if redis.call('HGET', KEYS[1], 'storedAt') ~= ARGV[1] then return 0 end
        return redis.call('UNLINK', KEYS[1])
        """)

    private static let common = """
        local used, expiry, cost, sum = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
        local entries = redis.call('HLEN', cost)
        if redis.call('ZCARD', used) ~= entries or redis.call('ZCARD', expiry) ~= entries
          or redis.call('EXISTS', sum) ~= math.min(entries, 1) then
          redis.call('UNLINK', used, expiry, cost, sum)
        end
        local function take(key)
          local record = redis.call('HGET', cost, key)
          if not record then return end
          local stored, bytes, pixels = string.match(record, '^(%S+) (%d+) (%d+)$')
          redis.call('HDEL', cost, key)
          redis.call('ZREM', used, key)
          redis.call('ZREM', expiry, key)
          redis.call('HINCRBY', sum, 'bytes', 0 - bytes)
          redis.call('HINCRBY', sum, 'pixels', 0 - pixels)
          return stored, bytes, pixels
        end
        local hasMore = 0
        local function reap()
          local time = redis.call('TIME')
          local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
          local gone = redis.call('ZRANGEBYSCORE', expiry, '-inf', now, 'LIMIT', 0, \(step))
          for _, key in ipairs(gone) do take(key) end
          if #gone == \(step) then hasMore = 1 end
        end
        local function keep()
          local last = redis.call('ZRANGE', expiry, -1, -1, 'WITHSCORES')
          if not last[2] then return redis.call('UNLINK', sum) end
          local moment = string.format('%.0f', last[2])
          for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, moment) end
        end
        local function makeRoom()
          local sums = redis.call('HMGET', sum, 'bytes', 'pixels')
          local left = {tonumber(sums[1] or 0), tonumber(sums[2] or 0), redis.call('HLEN', cost)}
          local function isOver()
            for place = 1, 3 do
              local limit = tonumber(ARGV[place])
              if limit >= 0 and left[place] > limit then return left[3] > 0 end
            end
            return false
          end
          local gone = {}
          while isOver() and #gone < 4 * \(step) do
            local key = redis.call('ZRANGE', used, 0, 0)[1]
            local stored, bytes, pixels = take(key)
            left = {left[1] - bytes, left[2] - pixels, left[3] - 1}
            for _, word in ipairs({key, stored, bytes, pixels}) do table.insert(gone, word) end
          end
          if isOver() then hasMore = 1 end
          keep()
          local reply = {hasMore}
          for _, number in ipairs(left) do table.insert(reply, string.format('%.0f', number)) end
          for _, word in ipairs(gone) do table.insert(reply, word) end
          return reply
        end

        """
}
