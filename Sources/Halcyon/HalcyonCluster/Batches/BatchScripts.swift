import Redis

/// The atomic operations on a batch. Its keys are in one hash slot:
///
/// | key | contents |
/// |---|---|
/// | `halcyon:batch:{ID}` | a hash: counts by outcome, `ended` (their sum), `created`, `total`, and the fields below |
/// | `…:ended:N` | a bitmap of the indices from N × ``indicesPerKey`` that have ended |
/// | `…:ids` | a set of the ids of jobs without an index that have ended |
/// | `…:failures` | a list of failures, in the order of their ends, as JSON |
///
/// `opened` in the hash says that it has counted all ends since the batch was created. The hash has a field for each of
/// the other keys (`ids`, `b0`, `b1`, …). A key that is missing or left over shows that Redis has lost or evicted
/// something. All keys are reset then, `opened` is missing, and the ends are counted again from the topic of events.
enum BatchScripts {
    /// The number of jobs whose ends one bitmap records.
    static let indicesPerKey = 16_384

    /// Counts ends of jobs, each once.
    ///
    /// KEYS: the hash, ids, failures, then the bitmaps. ARGV: the time, the interval of progress events and the TTL of
    /// the keys, all in milliseconds, the maximum number of failures, the time of the earliest event, the number of
    /// bitmaps and their numbers, then for each end: the index of the bitmap in KEYS and the bit, or `0` and the id;
    /// the outcome; the failure, or an empty text.
    ///
    /// Returns an array of `isOpened`, `isDone`, `isProgressDue` and the fields of the hash.
    static let count = RedisScript(
        """
        local batch, ids, failures = KEYS[1], KEYS[2], KEYS[3]
        local now, interval, ttl, most, earliest =
          tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
        local bitmaps = tonumber(ARGV[6])
        local function check(key, field)
          local isKnown, exists = redis.call('HEXISTS', batch, field) == 1, redis.call('EXISTS', key) == 1
          if exists and not isKnown then redis.call('DEL', key) end
          if isKnown and not exists then
            for _, name in ipairs(redis.call('HKEYS', batch)) do
              if string.match(name, '^b%d+$') then redis.call('DEL', batch .. ':ended:' .. string.sub(name, 2)) end
            end
            redis.call('DEL', batch, ids, failures)
          end
        end
        if redis.call('HEXISTS', batch, 'completedAt') == 0 then
          check(ids, 'ids')
          for i = 1, bitmaps do check(KEYS[3 + i], 'b' .. ARGV[6 + i]) end
          local ended = 0
          for i = 7 + bitmaps, #ARGV, 4 do
            local isNew
            if ARGV[i] == '0' then
              isNew = redis.call('SADD', ids, ARGV[i + 1]) == 1
              redis.call('HSET', batch, 'ids', 1)
            else
              isNew = redis.call('SETBIT', KEYS[tonumber(ARGV[i])], ARGV[i + 1], 1) == 0
            end
            if isNew then
              ended = ended + 1
              local count = redis.call('HINCRBY', batch, ARGV[i + 2], 1)
              if ARGV[i + 3] ~= '' and count <= most then redis.call('RPUSH', failures, ARGV[i + 3]) end
            end
          end
          for i = 1, bitmaps do redis.call('HSET', batch, 'b' .. ARGV[6 + i], 1) end
          if ended > 0 then
            redis.call('HINCRBY', batch, 'ended', ended)
            redis.call('HSET', batch, 'counted', ARGV[1])
          end
          for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ttl) end
        end
        local known = redis.call('HMGET', batch, 'opened', 'created', 'ended', 'total', 'completedAt', 'progress')
        local isOpened = known[5] or known[1] and tonumber(known[2] or earliest) <= earliest + 600000
        local isDone = known[4] and not known[5] and tonumber(known[3] or 0) >= tonumber(known[4])
        local isDue = interval > 0 and not known[5] and not isDone and now - tonumber(known[6] or 0) >= interval
        if isDue then redis.call('HSET', batch, 'progress', ARGV[1]) end
        return {isOpened and 1 or 0, isDone and 1 or 0, isDue and 1 or 0, redis.call('HGETALL', batch)}
        """)

    /// Enters the time of creation, tenant and owner of a batch that does not exist. KEYS: the hash. ARGV: the time,
    /// tenant and owner (empty for none), the TTL, both in milliseconds.
    ///
    /// Returns the fields of the hash.
    static let announce = RedisScript(
        """
        local batch = KEYS[1]
        if redis.call('EXISTS', batch) == 0 then
          redis.call('HSET', batch, 'announced', ARGV[1])
          if ARGV[2] ~= '' then redis.call('HSET', batch, 'tenant', ARGV[2]) end
          if ARGV[3] ~= '' then redis.call('HSET', batch, 'owner', ARGV[3]) end
          redis.call('PEXPIRE', batch, ARGV[4])
        end
        return redis.call('HGETALL', batch)
        """)

    /// Marks a batch as opened. KEYS: the hash. ARGV: created, tenant and owner (empty for none), the token of a
    /// recount (empty for none), the TTL in milliseconds. After a recount it has an effect only if the hash still has
    /// the token: Redis has not lost the counts meanwhile.
    ///
    /// Returns 1 if the batch is opened.
    static let open = RedisScript(
        """
        local batch = KEYS[1]
        if ARGV[4] ~= '' and redis.call('HGET', batch, 'recount') ~= ARGV[4] then return 0 end
        redis.call('HSET', batch, 'opened', 1, 'created', ARGV[1])
        redis.call('HDEL', batch, 'recount')
        if ARGV[2] ~= '' then redis.call('HSET', batch, 'tenant', ARGV[2]) end
        if ARGV[3] ~= '' then redis.call('HSET', batch, 'owner', ARGV[3]) end
        if redis.call('PTTL', batch) < 0 then redis.call('PEXPIRE', batch, ARGV[5]) end
        return 1
        """)

    /// Sets fields of a batch that is not completed, unless they have a value. KEYS: the hash. ARGV: names and values.
    static let note = RedisScript(
        """
        for i = 1, #ARGV, 2 do redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1]) end
        return redis.call('HGETALL', KEYS[1])
        """)

    /// Marks a batch as completed and deletes its bitmaps and ids. KEYS: the hash, ids, failures, then the bitmaps.
    /// ARGV: the time, the TTL, both in milliseconds, then names and values of the final counts.
    static let complete = RedisScript(
        """
        redis.call('HSETNX', KEYS[1], 'completedAt', ARGV[1])
        for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
        redis.call('PEXPIRE', KEYS[1], ARGV[2])
        redis.call('PEXPIRE', KEYS[3], ARGV[2])
        redis.call('DEL', KEYS[2], unpack(KEYS, 4))
        return 1
        """)
}
