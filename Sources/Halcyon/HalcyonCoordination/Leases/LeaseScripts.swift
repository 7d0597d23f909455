import Redis

/// The atomic operations on leases. All times are those of the server's clock.
///
/// The owner of a lease is stored as `PROCESS:ATTEMPT:FENCE:LEVEL`. The first two parts identify the attempt. A fencing
/// token is at least the server's time in microseconds, so that tokens keep growing after the last one was lost.
enum LeaseScripts {
    private static let common =
        FencingTokens.time + """
            local now = math.floor(micros / 1000)
            local function owner(holder) return string.match(holder, '^[^:]*:[^:]*') end
            local function fenceOf(holder) return tonumber(string.match(holder, '(%d+):%d+$')) end
            local function itemOf(lease) return string.match(lease, '}:lease:(.*)$') end
            -- An attempt ends by its owner's word: it is no death. `left` deaths are remembered; below 0: as many as before it.
            local function settle(fences, lease, fence, left)
              local field = 'deaths:' .. itemOf(lease)
              local deaths, open = string.match(redis.call('HGET', fences, field) or '', '^(%d+) (%d+) open$')
              if tonumber(open) ~= fence then return end
              if left < 0 then left = tonumber(deaths) end
              if left == 0 then redis.call('HDEL', fences, field)
              else note(fences, field, left .. ' ' .. open .. ' ended') end
            end
            -- What is prolonged too late, after its end, is not taken again.
            local function close(fences, fence)
              local last = tonumber(redis.call('HGET', fences, 'last')) or 0
              if last > fence then return end
              note(fences, 'last', digits(fence + 1))
            end

            """

    /// Acquires leases.
    ///
    /// KEYS: fences, then for each name its lease, waiters and product. ARGV: lease duration in milliseconds, process,
    /// attempt, level, then for each name the known fence: a number, or `any` to accept no stored product. Returns for
    /// each name `there`; `mine`, the fence and the number of crashes before it; or `held`, the owner and the remaining
    /// milliseconds of its lease.
    ///
    /// A granted lease is recorded under `deaths:ITEM`, together with the number of previous attempts that never ended,
    /// counted since the last attempt that ended with an outcome or the last purge of the item.
    ///
    /// An owner whose item was purged since is ignored, because its product cannot be stored.
    static let enter = RedisScript(
        common + """
            local process, level = ARGV[2], tonumber(ARGV[4])
            local me = process .. ':' .. ARGV[3]
            local marks = redis.call('HMGET', KEYS[1], 'last', 'floor')
            local last, floor = tonumber(marks[1]) or 0, tonumber(marks[2]) or 0
            local replies = {}
            for i = 1, (#KEYS - 1) / 3 do
              local lease, waiters, seen = KEYS[3 * i - 1], KEYS[3 * i], ARGV[4 + i]
              local made = tonumber(redis.call('HGET', KEYS[3 * i + 1], 'fence'))
              if made and seen ~= 'any' and made > tonumber(seen) then
                redis.call('ZREM', waiters, me)
                replies[i] = {'there'}
              else
                local holder, field = redis.call('GET', lease), 'deaths:' .. itemOf(lease)
                local known = redis.call('HMGET', KEYS[1], 'floor:' .. itemOf(lease), field)
                local least = math.max(floor, tonumber(known[1]) or 0)
                local deaths, before, state = string.match(known[2] or '', '^(%d+) (%d+) (%l+)$')
                deaths = before and tonumber(before) >= least and tonumber(deaths) or 0
                if holder and fenceOf(holder) < least then holder = false end
                if holder and owner(holder) == me then
                  redis.call('PEXPIRE', lease, ARGV[1])
                  replies[i] = {'mine', digits(fenceOf(holder)), deaths}
                elseif holder then
                  redis.call('ZADD', waiters, now, me)
                  if redis.call('PTTL', waiters) < 60000 then redis.call('PEXPIRE', waiters, 60000) end
                  local left = redis.call('PTTL', lease)
                  if level < tonumber(string.match(holder, '%d+$')) then
                    holder = string.gsub(holder, '%d+$', level)
                    redis.call('SET', lease, holder, 'PX', math.max(left, 1))
                    redis.call('PUBLISH', 'halcyon:process:' .. string.match(holder, '^[^:]*'), 'raise ' .. lease .. ' ' .. level)
                  end
                  replies[i] = {'held', holder, left}
                else
                  -- Above what is there: else nothing could be stored over it while a clock that was set back catches up.
                  last = math.max(last + 1, micros, (made or 0) + 1)
                  if state == 'open' and tonumber(before) >= least then deaths = deaths + 1 end
                  note(KEYS[1], 'last', digits(last), field, deaths .. ' ' .. digits(last) .. ' open')
                  redis.call('SET', lease, me .. ':' .. digits(last) .. ':' .. level, 'PX', ARGV[1])
                  redis.call('ZREM', waiters, me)
                  replies[i] = {'mine', digits(last), deaths}
                end
              end
            end
            return replies
            """)

    /// Renews a lease. KEYS: fences, lease. ARGV: lease duration in milliseconds, owner, fence, level, item. Returns 1
    /// if the owner still holds the lease, or acquired it again because no other attempt had held it since; otherwise
    /// 0.
    static let renew = RedisScript(
        common + """
            local holder = redis.call('GET', KEYS[2])
            if holder then
              if owner(holder) ~= ARGV[2] then return 0 end
              return redis.call('PEXPIRE', KEYS[2], ARGV[1])
            end
            local fences = redis.call('HMGET', KEYS[1], 'last', 'floor', 'floor:' .. ARGV[5])
            for i = 1, 3 do if fences[i] and tonumber(fences[i]) > tonumber(ARGV[3]) then return 0 end end
            note(KEYS[1], 'last', ARGV[3])
            redis.call('SET', KEYS[2], ARGV[2] .. ':' .. ARGV[3] .. ':' .. ARGV[4], 'PX', ARGV[1])
            return 1
            """)

    /// Releases a lease and notifies its waiters. KEYS: fences, lease, waiters. ARGV: owner, fence (0 if the owner does
    /// not know whether it holds the lease), outcome, number of crashes to record (negative: as many as before the
    /// lease). Returns 0 if another attempt holds the lease.
    static let release = RedisScript(
        common + """
            local holder = redis.call('GET', KEYS[2])
            if holder and owner(holder) ~= ARGV[1] then return 0 end
            redis.call('DEL', KEYS[2])
            local fence = holder and fenceOf(holder) or tonumber(ARGV[2])
            settle(KEYS[1], KEYS[2], fence, tonumber(ARGV[4]))
            close(KEYS[1], fence)
            local told = {}
            for _, waiter in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
              local process = string.match(waiter, '^[^:]*')
              if not told[process] then
                told[process] = true
                redis.call('PUBLISH', 'halcyon:process:' .. process, 'ended ' .. KEYS[2] .. ' ' .. digits(fence) .. ' ' .. ARGV[3])
              end
            end
            redis.call('DEL', KEYS[3])
            return 1
            """)

    /// Abandons leases unless another attempt waits. KEYS: fences, then for each lease its lease and waiters. ARGV:
    /// lease duration in milliseconds, owner, then for each lease its fence. Returns 1 if an attempt waits for one of
    /// the products. Otherwise all leases end, and it returns 0. A waiter that has not asked again within a lease
    /// duration is ignored.
    static let abandon = RedisScript(
        common + """
            for i = 1, (#KEYS - 1) / 2 do
              redis.call('ZREMRANGEBYSCORE', KEYS[2 * i + 1], '-inf', now - ARGV[1])
              if redis.call('EXISTS', KEYS[2 * i + 1]) == 1 then return 1 end
            end
            for i = 1, (#KEYS - 1) / 2 do
              local holder = redis.call('GET', KEYS[2 * i])
              if holder and owner(holder) == ARGV[2] then redis.call('DEL', KEYS[2 * i]) end
              settle(KEYS[1], KEYS[2 * i], tonumber(ARGV[2 + i]), -1)
              close(KEYS[1], tonumber(ARGV[2 + i]))
            end
            return 0
            """)
}
