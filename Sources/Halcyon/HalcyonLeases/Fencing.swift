/// Lua for scripts that store products and forget them. The fences of a source are a hash that is remembered for a while after the last
/// lease or purge.
public enum Fencing {
    /// Milliseconds for which fences are remembered at least. Only an owner that was away for as long needs them longer.
    public static let memory = 600_000

    /// Defines `micros`, the server's time in microseconds; `digits(number)`; and `note(fences, field, value, …)`, which writes them, to be
    /// remembered for a while from now.
    static let time = """
        local time = redis.call('TIME')
        local micros = time[1] * 1000000 + time[2]
        local function digits(number) return string.format('%.0f', number) end
        local function note(fences, ...)
          local left = redis.call('PTTL', fences)
          redis.call('HSET', fences, ...)
          if left ~= -1 and left < \(memory) then redis.call('PEXPIRE', fences, \(memory)) end
        end

        """

    /// Defines `isFencedOut(fences, product, item, fence, since)`: whether something newer than what was made under this fence is
    /// there, its making began before its item was purged, or it was made from something older (`since`) than the last purge of its
    /// source. Without a fence (0) nothing is known to be older, and whatever has one is newer.
    public static let check = """
        local function isFencedOut(fences, product, item, fence, since)
          local made = redis.call('HGET', product, 'fence')
          if made and tonumber(made) > fence then return true end
          local floors = redis.call('HMGET', fences, 'floor', 'floor:' .. item)
          return tonumber(floors[1] or 0) > since or tonumber(floors[2] or 0) > fence
        end

        """

    /// Defines `purge(fences, item)`: what was begun before is stored no more, of one item, or without one of all items of the source.
    /// To be called in the same step in which what is there is removed. The floor never sinks, and is above all fences given, also where
    /// they are ahead of a clock that was set back.
    public static let purge =
        "local purge do\n" + time + """
            purge = function(fences, item)
              local field = item and 'floor:' .. item or 'floor'
              local marks = redis.call('HMGET', fences, 'last', field)
              local fence = digits(math.max((tonumber(marks[1]) or 0) + 1, tonumber(marks[2]) or 0, micros))
              note(fences, 'last', fence, field, fence)
            end
            end

            """
}
