/// The positions of the keys in a command. A command that is not listed here cannot be sent to a cluster.
///
/// The first four cases follow the key specifications of https://redis.io/docs/latest/develop/reference/key-specs/.
enum KeySpecification: Hashable {
    /// Arguments from the first to the last, with a step. A negative last position counts from the end; -1 is the last
    /// argument.
    case words(first: Int, last: Int, step: Int)
    /// The argument at `at` is the number of keys, and the keys follow it. The argument at `also` is another key.
    case counted(at: Int, also: Int? = nil)
    /// No key. All nodes give the same result.
    case anyNode
    /// No key. The command concerns a single node, which the caller must name.
    case oneNode
    /// A command that delimits a transaction. It is sent with the commands next to it.
    case transaction

    /// Looks up the positions of the keys of a command by its name. Nil if the command is unknown.
    init?(of command: String) {
        guard let known = Self.known[command] ?? Self.known[command.uppercased()] else { return nil }
        self = known
    }

    /// Returns the keys of a command.
    /// - Throws: ``RedisError/Code/misuse`` if arguments are missing, or if the number of keys is invalid.
    func keys(of command: [RedisArgument]) throws(RedisError) -> ArraySlice<RedisArgument> {
        switch self {
        case .anyNode, .oneNode, .transaction: return []
        case .words(let first, let last, let step):
            let end = last < 0 ? command.count + last : last
            guard first <= end, end < command.count else { throw .noKey(command) }
            if step == 1 { return command[first...end] }
            return ArraySlice(stride(from: first, through: end, by: step).map { command[$0] })
        case .counted(let position, let also):
            guard position < command.count, let count = command[position].number, count >= 0,
                position + count < command.count
            else { throw .noKey(command) }
            let counted = command[(position + 1)..<(position + 1 + count)]
            return also.map { [command[$0]] + counted } ?? counted
        }
    }

    private static let known: [String: KeySpecification] = {
        let groups: [(KeySpecification, String)] = [
            (
                .words(first: 1, last: 1, step: 1),
                """
                GET SET SETEX PSETEX SETNX GETSET GETDEL GETEX APPEND STRLEN INCR INCRBY INCRBYFLOAT DECR DECRBY \
                GETRANGE SETRANGE SETBIT GETBIT BITCOUNT BITPOS BITFIELD TYPE TTL PTTL EXPIRE PEXPIRE EXPIREAT \
                PEXPIREAT EXPIRETIME PEXPIRETIME PERSIST DUMP RESTORE SORT HGET HSET HSETNX HMGET HMSET HGETALL HDEL \
                HEXISTS HLEN HKEYS HVALS HSTRLEN HINCRBY HINCRBYFLOAT HRANDFIELD HSCAN LPUSH RPUSH LPUSHX RPUSHX LPOP \
                RPOP LLEN LRANGE LINDEX LINSERT LPOS LREM LSET LTRIM SADD SREM SCARD SISMEMBER SMISMEMBER SMEMBERS \
                SPOP SRANDMEMBER SSCAN ZADD ZREM ZCARD ZCOUNT ZSCORE ZMSCORE ZRANK ZREVRANK ZINCRBY ZRANGE ZREVRANGE \
                ZRANGEBYSCORE ZREVRANGEBYSCORE ZRANGEBYLEX ZREVRANGEBYLEX ZLEXCOUNT ZREMRANGEBYRANK ZREMRANGEBYSCORE \
                ZREMRANGEBYLEX ZPOPMIN ZPOPMAX ZRANDMEMBER ZSCAN PFADD XADD XLEN XRANGE XREVRANGE XDEL XTRIM XACK \
                GEOADD GEODIST GEOPOS GEOHASH GEOSEARCH SPUBLISH
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
                SCAN DBSIZE KEYS RANDOMKEY FLUSHALL FLUSHDB INFO CONFIG CLIENT SCRIPT FUNCTION ROLE ACL MEMORY SLOWLOG \
                LATENCY PUBSUB DEBUG LASTSAVE BGSAVE
                """
            ),
            (.transaction, "MULTI EXEC DISCARD"),
        ]
        var known: [String: KeySpecification] = [:]
        for (places, names) in groups { for name in names.split(separator: " ") { known[String(name)] = places } }
        return known
    }()
}

extension RedisError {
    fileprivate static func noKey(_ command: [RedisArgument]) -> RedisError {
        RedisError(.misuse, "\(command.first?.text ?? "") lacks key arguments or has an invalid number of keys")
    }
}

extension RedisArgument {
    /// The argument as text. Invalid UTF-8 is replaced.
    var text: String {
        switch self {
        case .string(let text): text
        case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
        case .integer(let value): String(value)
        }
    }

    /// The integer value of the argument, if it is an integer or its text.
    fileprivate var number: Int? {
        if case .integer(let value) = self { value } else { Int(text) }
    }
}
