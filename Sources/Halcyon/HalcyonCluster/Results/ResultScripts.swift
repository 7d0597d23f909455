import HalcyonCoordination
import HalcyonResults
import Redis

/// The atomic operations on a result. The first key of each script is that of the result, the second that of the index
/// of its source. The index contains the names of all results of the source (the parts of their keys after the braces)
/// by their expiry, so that a purge finds them. One-time results are not in the index. Evicted results stay in it until
/// they would have expired, which is harmless.
///
/// Times are milliseconds since 1970 by the server's clock; `storedAt` is a ``StoreTimestamp``.
enum ResultScripts {
    /// The keys that all scripts need for a result.
    static func keys(of result: String) -> [RedisArgument] {
        [.string(result), .string(SourceKeys(of: result).results)]
    }

    /// The keys of scripts that check fencing tokens.
    static func keys(of result: String, fencedBy lease: LeaseName) -> [RedisArgument] {
        keys(of: result) + [.string(lease.fences)]
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

    /// Adds tags to the field `tags` of the result (``ResultTags``). Tags of earlier jobs remain, because the result
    /// remains in their indexes. An empty text adds none.
    private static let tagging = """
        local function addTags(list)
          if list == '' then return end
          local tags, size, seen = {}, 0, {}
          for tag in string.gmatch(list .. '\\n' .. (redis.call('HGET', KEYS[1], 'tags') or ''), '[^\\n]+') do
            if not seen[tag] then
              seen[tag] = true
              size = size + #tag + 1
              table.insert(tags, tag)
            end
          end
          local isTooLong = seen['\(ResultTags.overflow)'] or size > \(ResultTags.maximumBytes)
          redis.call('HSET', KEYS[1], 'tags', isTooLong and '\(ResultTags.overflow)' or table.concat(tags, '\\n'))
        end

        """

    /// KEYS: result. ARGV: tags. Returns `expiresAt`; nil if the result is gone.
    static let addTags = RedisScript(
        tagging + """
            if redis.call('EXISTS', KEYS[1]) == 0 then return false end
            addTags(ARGV[1])
            return redis.call('HGET', KEYS[1], 'expiresAt')
            """)

    /// KEYS: result, index, fences. ARGV: TTL in milliseconds, body, facts, rule, fence, item, fence of the oldest
    /// input, `traceparent` of the producer or an empty string, tags, the tenant or an empty string. Returns
    /// `expiresAt`, `storedAt` and the rule; nil if a newer result is there, or the result has been purged since the
    /// work started. A negative fence is not checked.
    ///
    /// All fields are written, so that none of an older result remains, except for its tags, and for a later expiry
    /// that another policy determined. HSET precedes all other writes, because Redis allows a script that has written
    /// to exceed maxmemory.
    static let store = RedisScript(
        indexing + tagging + FencingTokens.check + StoreTimestamp.lua + """
            local fence = tonumber(ARGV[5])
            if fence >= 0 and isFencedOut(KEYS[3], KEYS[1], ARGV[6], fence, tonumber(ARGV[7])) then return false end
            local expires, rule = math.floor(now) + ARGV[1], ARGV[4]
            local old = redis.call('HMGET', KEYS[1], 'expiresAt', 'storedAt', 'rule', 'trace')
            if old[1] and old[3] ~= rule and tonumber(old[1]) > expires then
              expires, rule = tonumber(old[1]), old[3] or ''
            end
            expires = string.format('%.0f', expires)
            local stored = stamp(old[2])
            redis.call(
              'HSET', KEYS[1], 'body', ARGV[2], 'facts', ARGV[3], 'expiresAt', expires, 'storedAt', stored,
              'rule', rule, 'fence', ARGV[5], 'since', ARGV[7])
            if ARGV[8] ~= '' then redis.call('HSET', KEYS[1], 'trace', ARGV[8])
            elseif old[4] then redis.call('HDEL', KEYS[1], 'trace') end
            addTags(ARGV[9])
            if ARGV[10] ~= '' then redis.call('HSET', KEYS[1], 'tenant', ARGV[10]) end
            redis.call('PEXPIREAT', KEYS[1], expires)
            if fence >= 0 then enter(expires) end
            return {expires, stored, rule}
            """)

    /// KEYS: result, index, fences. ARGV: `expiresAt`, body, facts, rule, fence, item, fence of the oldest input,
    /// `storedAt`, tags, the tenant or an empty string. Returns `storedAt`; nil if the result has expired or has been
    /// purged since, or if another one is there.
    ///
    /// The time of storing remains, so that policies extend the life as if it had never been evicted.
    static let restore = RedisScript(
        indexing + tagging + FencingTokens.check + StoreTimestamp.lua + """
            if isFencedOut(KEYS[3], KEYS[1], ARGV[6], tonumber(ARGV[5]), tonumber(ARGV[7])) then return false end
            if tonumber(ARGV[1]) <= now or redis.call('EXISTS', KEYS[1]) == 1 then return false end
            redis.call(
              'HSET', KEYS[1], 'body', ARGV[2], 'facts', ARGV[3], 'expiresAt', ARGV[1], 'storedAt', ARGV[8],
              'rule', ARGV[4], 'fence', ARGV[5], 'since', ARGV[7])
            addTags(ARGV[9])
            if ARGV[10] ~= '' then redis.call('HSET', KEYS[1], 'tenant', ARGV[10]) end
            redis.call('PEXPIREAT', KEYS[1], ARGV[1])
            enter(ARGV[1])
            return ARGV[8]
            """)

    /// KEYS: result, index, fences. ARGV: fence, item, fence of the oldest input. Returns 2 if a newer result is there,
    /// and otherwise 1 if the result has been purged.
    static let standing = RedisScript(
        FencingTokens.check + """
            local made = redis.call('HGET', KEYS[1], 'fence')
            if made and tonumber(made) > tonumber(ARGV[1]) then return 2 end
            return isFencedOut(KEYS[3], KEYS[1], ARGV[2], tonumber(ARGV[1]), tonumber(ARGV[3])) and 1 or 0
            """)

    /// ARGV: TTL of the policy in milliseconds, rule. Returns `expiresAt`; nil if the result is gone.
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

    /// ARGV: rule. Returns `storedAt` of the removed result; nil if none was removed.
    static let removeOfRule = RedisScript(
        indexing + """
            local old = redis.call('HMGET', KEYS[1], 'rule', 'storedAt')
            if old[1] ~= ARGV[1] then return false end
            redis.call('UNLINK', KEYS[1])
            leave()
            return old[2]
            """)

    /// Removes a result and returns its body and facts.
    static let take = RedisScript(
        """
        local fields = redis.call('HMGET', KEYS[1], 'body', 'facts')
        redis.call('UNLINK', KEYS[1])
        return fields
        """)
}

/// The field `tags` of a result: the ``CacheTag`` of each tag, with a line break between two.
enum ResultTags {
    /// The maximum size of the field. CDNs accept no more in a header.
    static let maximumBytes = 16 << 10
    /// The text in place of more tags than that. No tag contains the character.
    static let overflow = "*"

    /// Returns the tags of a result from the result store as a text.
    static func text(of result: StoredResult) -> String {
        let tags = result.tagDigests.map { CacheTag.of(digest: $0) }
        return (tags + (result.tenant.map { [CacheTag.of(tenant: $0)] } ?? [])).joined(separator: "\n")
    }

    /// Returns the tags of jobs in a text (``CacheTag/tag(_:of:)``); none of a result with too many.
    static func tags(in text: String, of tenant: String?) -> [String] {
        text == overflow ? [] : text.split(separator: "\n").compactMap { CacheTag.tag($0, of: tenant) }
    }

    /// Returns the tags of a job as a text.
    static func text(_ tags: [String], of tenant: String?) -> String {
        CacheTag.all(of: tags, of: tenant).joined(separator: "\n")
    }
}
