/// When something was stored, as its field `storedAt` says: milliseconds since 1970 by Redis' clock, with decimals. It grows with each
/// storing of a key, so it tells one storing from the next.
public enum StoringMoment {
    /// Lua for the beginning of a script that stores: `now`, and `stamp(old)`, the new `storedAt` of what had `old`, if it had any.
    public static let lua = """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + time[2] / 1000
        local function stamp(old)
          if old and tonumber(old) > now - 0.0005 then return string.format('%.3f', old + 0.001) end
          return string.format('%.3f', now)
        end

        """
}
