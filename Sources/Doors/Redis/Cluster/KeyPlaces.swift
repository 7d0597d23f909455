/// Where the keys of a command stand. This is the one place that knows it; a command that is not listed here has no place in a
/// cluster.
///
/// The first four follow the key specifications of https://redis.io/docs/latest/develop/reference/key-specs/.
enum KeyPlaces: Hashable {
    /// Words from the first to the last (below 0: counted from the end, -1 is the last word), every so many.
    case words(first: Int, last: Int, step: Int)
    /// So many words as the number at `count` says, from the word behind it; and the word at `also`.
    case counted(at: Int, also: Int? = nil)
    /// No key, and every node does it equally well.
    case anyNode
    /// No key, and what it does or tells is one node's own business: the caller says which node's.
    case oneNode
    /// A word of a transaction: it goes with the commands beside it.
    case transaction

    /// Where the keys of the command with this name are; nil when it is not known.
    init?(of command: String) {
        guard let known = Self.known[command] ?? Self.known[command.uppercased()] else { return nil }
        self = known
    }

    /// - Returns: the keys of a command.
    /// - Throws: ``RedisError/Code/misuse`` when the words are too few, or the number of keys is none.
    func keys(of command: [RedisArgument]) throws(RedisError) -> ArraySlice<RedisArgument> {
        switch self {
        case .anyNode, .oneNode, .transaction: return []
        case .words(let first, let last, let step):
            let end = last < 0 ? command.count + last : last
            guard first <= end, end < command.count else { throw .noKey(command) }
            if step == 1 { return command[first...end] }
            return ArraySlice(stride(from: first, through: end, by: step).map { command[$0] })
        case .counted(let place, let also):
            guard place < command.count, let count = command[place].number, count >= 0,
                place + count < command.count
            else { throw .noKey(command) }
            let counted = command[(place + 1)..<(place + 1 + count)]
            return also.map { [command[$0]] + counted } ?? counted
        }
    }

    private static let known: [String: KeyPlaces] = {
        let groups: [(KeyPlaces, String)] = [
            (
                .words(first: 1, last: 1, step: 1),
                """
                GET SET SETEX PSETEX SETNX GETSET GETDEL GETEX APPEND STRLEN INCR INCRBY INCRBYFLOAT DECR DECRBY GETRANGE \
                SETRANGE SETBIT GETBIT BITCOUNT BITPOS BITFIELD TYPE TTL PTTL EXPIRE PEXPIRE EXPIREAT PEXPIREAT EXPIRETIME \
                PEXPIRETIME PERSIST DUMP RESTORE SORT HGET HSET HSETNX HMGET HMSET HGETALL HDEL HEXISTS HLEN HKEYS HVALS \
                HSTRLEN HINCRBY HINCRBYFLOAT HRANDFIELD HSCAN LPUSH RPUSH LPUSHX RPUSHX LPOP RPOP LLEN LRANGE LINDEX LINSERT \
                LPOS LREM LSET LTRIM SADD SREM SCARD SISMEMBER SMISMEMBER SMEMBERS SPOP SRANDMEMBER SSCAN ZADD ZREM ZCARD \
                ZCOUNT ZSCORE ZMSCORE ZRANK ZREVRANK ZINCRBY ZRANGE ZREVRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE ZRANGEBYLEX \
                ZREVRANGEBYLEX ZLEXCOUNT ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREMRANGEBYLEX ZPOPMIN ZPOPMAX ZRANDMEMBER ZSCAN \
                PFADD XADD XLEN XRANGE XREVRANGE XDEL XTRIM XACK GEOADD GEODIST GEOPOS GEOHASH GEOSEARCH SPUBLISH
                """
            ),
            (
                .words(first: 1, last: -1, step: 1),
                "DEL UNLINK EXISTS TOUCH MGET SUNION SINTER SDIFF SUNIONSTORE SINTERSTORE SDIFFSTORE PFCOUNT PFMERGE"
            ),
            (
                .words(first: 1, last: 2, step: 1),
                "RENAME RENAMENX COPY LMOVE RPOPLPUSH SMOVE ZRANGESTORE GEOSEARCHSTORE"
            ),
            (.words(first: 1, last: -1, step: 2), "MSET MSETNX"),
            (.words(first: 2, last: 2, step: 1), "OBJECT XGROUP XINFO"),
            (.words(first: 2, last: -1, step: 1), "BITOP"),
            (.counted(at: 2), "EVAL EVALSHA EVAL_RO EVALSHA_RO FCALL FCALL_RO"),
            (.counted(at: 1), "SINTERCARD ZUNION ZINTER ZDIFF ZINTERCARD LMPOP ZMPOP"),
            (.counted(at: 2, also: 1), "ZUNIONSTORE ZINTERSTORE ZDIFFSTORE"),
            (.anyNode, "PING ECHO TIME PUBLISH COMMAND CLUSTER"),
            (
                .oneNode,
                """
                SCAN DBSIZE KEYS RANDOMKEY FLUSHALL FLUSHDB INFO CONFIG CLIENT SCRIPT FUNCTION ROLE ACL MEMORY SLOWLOG LATENCY \
                PUBSUB DEBUG LASTSAVE BGSAVE
                """
            ),
            (.transaction, "MULTI EXEC DISCARD"),
        ]
        var known: [String: KeyPlaces] = [:]
        for (places, names) in groups { for name in names.split(separator: " ") { known[String(name)] = places } }
        return known
    }()
}

extension RedisError {
    fileprivate static func noKey(_ command: [RedisArgument]) -> RedisError {
        RedisError(.misuse, "\(command.first?.text ?? "") lacks the words that say its keys")
    }
}

extension RedisArgument {
    /// The word as text, mended where it is not UTF-8.
    var text: String {
        switch self {
        case .string(let text): text
        case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
        case .integer(let value): String(value)
        }
    }

    /// The integer that the word is or spells.
    fileprivate var number: Int? {
        if case .integer(let value) = self { value } else { Int(text) }
    }
}
