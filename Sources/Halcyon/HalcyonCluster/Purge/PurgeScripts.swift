import HalcyonLeases
import Redis

/// How results are forgotten. Each script has the keys of one slot.
enum PurgeScripts {
    /// Removes results and what else is named, and keeps work under way from bringing them back (``Fencing/purge``).
    ///
    /// KEYS: fences, index of results, then what is to go. ARGV: the item that is purged, or nothing for all items of the source, and
    /// whether the index is wanted. Gives the names in the index, and then of each result that was there its key and its `storedAt`.
    ///
    /// UNLINK comes before all other writing: once a script has written, Redis lets it go on past maxmemory.
    static let begin = RedisScript(
        removing + Fencing.purge + """
            local gone = remove()
            purge(KEYS[1], ARGV[1] ~= '' and ARGV[1] or nil)
            return {ARGV[2] == 'list' and redis.call('ZRANGE', KEYS[2], 0, -1) or {}, gone}
            """)

    /// Removes results. KEYS: fences, index of results, results. Gives of each that was there its key and its `storedAt`.
    static let remove = RedisScript(removing + "return remove()")

    private static let removing = """
        local function remove()
          local gone = {}
          for place = 3, #KEYS do
            local key = KEYS[place]
            local name = string.match(key, '}:(.*)$')
            if name ~= 'source' then
              local stored = redis.call('HGET', key, 'storedAt')
              if stored then
                table.insert(gone, key)
                table.insert(gone, stored)
              end
            end
            redis.call('UNLINK', key)
            redis.call('ZREM', KEYS[2], name)
          end
          return gone
        end

        """
}
