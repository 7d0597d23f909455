import CHiredis
import Glibc
import Threads

/// One hiredis context on an event loop: bytes out, replies in, and word of its end. It is used once and never reconnects.
///
/// It belongs to the loop's thread, and so does every call of its handler. Not `Sendable`, so the compiler keeps it with the
/// actor that made it.
final class Connection {
    /// What happens on a connection. ``closed(_:)`` comes once and last, and never after ``close()``.
    enum Event {
        case connected
        case reply(RedisValue)
        case closed(RedisError)
    }

    /// Where to connect to: no name, for looking names up blocks.
    enum Address: Hashable, Sendable {
        case ip(String, port: UInt16)
        case unix(path: String)
    }

    /// Whether hiredis was built with TLS.
    static var hasTLS: Bool { chiredis_has_tls() }

    private let loop: EventLoop
    private let descriptor: Int32
    private let tls: TLS?
    /// Lives as long as the context does.
    private let tlsSession: UnsafeMutableRawPointer?
    private var handler: ((Event) -> Void)?
    /// Owned by hiredis itself: it frees the context after it has called ``contextIsGone()``.
    private var context: UnsafeMutablePointer<redisAsyncContext>?
    private var words = ArgumentBuffer()
    private var wanted: EventLoop.Readiness = []
    private var watched: EventLoop.Readiness = []
    private var isConnected = false
    /// hiredis may free the context in a call from us: no other call may begin before that one has returned.
    private var isInsideHiredis = false

    /// When bytes last came from the server.
    private(set) var lastHeard = ContinuousClock.now

    /// Begins to connect. `handler` is kept until the connection is closed.
    /// - Throws: ``RedisError/Code/unavailable`` when the system refuses at once.
    init(
        to address: Address, tls: TLS?, on loop: EventLoop, handler: @escaping (Event) -> Void
    ) throws(RedisError) {
        let made =
            switch address {
            case .ip(let host, let port): redisAsyncConnect(host, Int32(port))
            case .unix(let path): redisAsyncConnectUnix(path)
            }
        guard let made else { throw RedisError(.unavailable, "no memory for a connection") }
        guard made.pointee.err == 0 else {
            defer { redisAsyncFree(made) }
            throw RedisError(.unavailable, Self.text(of: made))
        }
        tlsSession = tls.flatMap { chiredis_tls_start(made, $0.context, $0.host) }
        guard tls == nil || tlsSession != nil else {
            defer { redisAsyncFree(made) }
            throw RedisError(.unavailable, "cannot start TLS: \(Self.text(of: made))")
        }
        self.loop = loop
        self.tls = tls
        self.handler = handler
        descriptor = made.pointee.c.fd
        context = made
        let own = Unmanaged.passRetained(self).toOpaque()
        made.pointee.data = own
        made.pointee.ev.data = own
        made.pointee.ev.addRead = addRead
        made.pointee.ev.delRead = delRead
        made.pointee.ev.addWrite = addWrite
        made.pointee.ev.delWrite = delWrite
        made.pointee.ev.cleanup = cleanup
        redisAsyncSetConnectCallback(made, onConnect)
        updateWatch()
    }

    /// Queues a command behind those before it; ``flush()`` sends what is queued. Nothing happens on a closed connection.
    func send(_ command: [RedisArgument]) {
        guard let context else { return }
        words.withWords(command) { count, words, lengths in
            _ = redisAsyncCommandArgv(context, onReply, nil, count, words, lengths)
        }
    }

    /// Writes what is queued, as far as the socket takes it; the rest follows by itself.
    func flush() {
        guard !isInsideHiredis, let context else { return }
        if isConnected && wanted.contains(.writable) { insideHiredis { redisAsyncHandleWrite(context) } }
        updateWatch()
    }

    /// Ends the connection; the handler is not called again.
    func close() {
        handler = nil
        if let context { redisAsyncFree(context) }
    }

    /// Ends the connection because of `error`, which the handler is told.
    func fail(_ error: RedisError) {
        let handler = handler
        close()
        handler?(.closed(error))
    }

    // MARK: The loop

    private func ready(_ readiness: EventLoop.Readiness) {
        let failed = !readiness.isDisjoint(with: .failed)
        if let context, failed || readiness.contains(.readable) {
            lastHeard = .now
            insideHiredis { redisAsyncHandleRead(context) }
        }
        if let context, wanted.contains(.writable), failed || readiness.contains(.writable) {
            insideHiredis { redisAsyncHandleWrite(context) }
        }
        flush()
    }

    private func insideHiredis(_ call: () -> Void) {
        isInsideHiredis = true
        call()
        isInsideHiredis = false
    }

    /// Tells epoll what hiredis wants, if that has changed: hiredis says it once per command.
    private func updateWatch() {
        guard context != nil, wanted != watched else { return }
        watched = wanted
        loop.watch(descriptor, for: wanted) { [self] in ready($0) }
    }

    // MARK: Called by hiredis

    fileprivate func want(_ readiness: EventLoop.Readiness) { wanted.formUnion(readiness) }

    fileprivate func unwant(_ readiness: EventLoop.Readiness) { wanted.subtract(readiness) }

    fileprivate func connected() {
        isConnected = true
        handler?(.connected)
    }

    fileprivate func received(_ reply: UnsafeMutablePointer<redisReply>) {
        handler?(.reply(RedisValue(reply)))
    }

    /// The context is about to be freed.
    fileprivate func contextIsGone() {
        guard let gone = context else { return }
        context = nil
        loop.unwatch(descriptor)
        let handler = handler
        self.handler = nil
        handler?(.closed(error(of: gone)))
        Unmanaged.passUnretained(self).release()
    }

    private func error(of context: UnsafeMutablePointer<redisAsyncContext>) -> RedisError {
        if let tlsSession, let complaint = chiredis_tls_complaint(tlsSession) {
            return RedisError(.unavailable, "the server's certificate is refused: \(String(cString: complaint))")
        }
        let text = Self.text(of: context)
        let message = text.isEmpty ? "the connection was closed" : text
        // Everything else is a connection that is not there, even an error that the server sends unasked, such as
        // "ERR max number of clients reached".
        return RedisError(context.pointee.c.err == REDIS_ERR_PROTOCOL ? .protocolError : .unavailable, message)
    }

    /// hiredis' words.
    private static func text(of context: UnsafeMutablePointer<redisAsyncContext>) -> String {
        withUnsafeBytes(of: context.pointee.c.errstr) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

// C calls these on the loop's thread. Plain functions: a closure made in isolated code would trap.

private func connection(_ context: UnsafeMutableRawPointer?) -> Connection {
    Unmanaged<Connection>.fromOpaque(context!).takeUnretainedValue()
}

private func addRead(_ own: UnsafeMutableRawPointer?) { connection(own).want(.readable) }
private func delRead(_ own: UnsafeMutableRawPointer?) { connection(own).unwant(.readable) }
private func addWrite(_ own: UnsafeMutableRawPointer?) { connection(own).want(.writable) }
private func delWrite(_ own: UnsafeMutableRawPointer?) { connection(own).unwant(.writable) }
private func cleanup(_ own: UnsafeMutableRawPointer?) { connection(own).contextIsGone() }

private func onConnect(_ context: UnsafePointer<redisAsyncContext>?, _ status: Int32) {
    // A failure is told with its reason by the clean-up that follows.
    if status == REDIS_OK { connection(context!.pointee.data).connected() }
}

private func onReply(
    _ context: UnsafeMutablePointer<redisAsyncContext>?, _ reply: UnsafeMutableRawPointer?,
    _: UnsafeMutableRawPointer?
) {
    // Without a reply the context is dying, and the connection may be gone already.
    guard let reply else { return }
    connection(context!.pointee.data).received(reply.assumingMemoryBound(to: redisReply.self))
}

/// Turns the words of a command into the pointers and lengths that `redisAsyncCommandArgv` takes.
///
/// Short words are gathered in one buffer that is used again for the next command; long bodies are pointed at where they are.
struct ArgumentBuffer {
    /// Bytes up to which copying a body is cheaper than pointing at it.
    private static let copied = 512
    /// Bytes of capacity worth keeping from one command to the next.
    private static let kept = 1 << 16

    private var text: [UInt8] = []
    private var lengths: [Int] = []
    private var pointers: [UnsafePointer<CChar>?] = []

    /// Calls `body` with the words, which are valid inside it alone.
    mutating func withWords<Result>(
        _ words: [RedisArgument],
        _ body: (Int32, UnsafeMutablePointer<UnsafePointer<CChar>?>, UnsafePointer<Int>) -> Result
    ) -> Result {
        precondition(!words.isEmpty, "a command without words")
        gather(words)
        defer { if text.capacity > Self.kept { text = [] } }
        return text.withUnsafeBufferPointer { text in
            // A zero-length buffer may have no address, and hiredis copies nothing from it.
            let base = UnsafeRawPointer(text.baseAddress)?.assumingMemoryBound(to: CChar.self)
            return point(words[...], from: base, body)
        }
    }

    private mutating func gather(_ words: [RedisArgument]) {
        text.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        pointers.removeAll(keepingCapacity: true)
        for word in words {
            let before = text.count
            switch word {
            case .string(let string): text.append(contentsOf: string.utf8)
            case .integer(let value): text.append(contentsOf: String(value).utf8)
            case .bytes(let bytes) where bytes.count <= Self.copied: text.append(contentsOf: bytes)
            case .bytes(let bytes):
                lengths.append(bytes.count)
                continue
            }
            lengths.append(text.count - before)
        }
    }

    /// Fills in the pointers, nesting once for each long body so that its storage stays where it is.
    private mutating func point<Result>(
        _ words: ArraySlice<RedisArgument>, from text: UnsafePointer<CChar>?,
        _ body: (Int32, UnsafeMutablePointer<UnsafePointer<CChar>?>, UnsafePointer<Int>) -> Result
    ) -> Result {
        var text = text
        for index in words.indices {
            if case .bytes(let bytes) = words[index], bytes.count > Self.copied {
                return bytes.withUnsafeBytes { bytes in
                    pointers.append(bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
                    return point(words[(index + 1)...], from: text, body)
                }
            }
            pointers.append(text)
            text = text.map { $0 + lengths[index] }
        }
        return body(Int32(pointers.count), &pointers, lengths)
    }
}

extension RedisValue {
    /// Copies a reply of hiredis, which frees its own when the callback returns.
    init(_ reply: UnsafePointer<redisReply>) {
        var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: reply.pointee.str, count: reply.pointee.len) }
        switch chiredis_kind_of(reply) {
        case chiredis_integer: self = .integer(Int(reply.pointee.integer))
        case chiredis_string: self = .bytes(Array(bytes))
        case chiredis_status: self = .status(String(decoding: bytes, as: UTF8.self))
        case chiredis_error: self = .error(RedisError(reply: String(decoding: bytes, as: UTF8.self)))
        case chiredis_array:
            let elements = UnsafeBufferPointer(start: reply.pointee.element, count: reply.pointee.elements)
            self = .array(elements.map { $0.map { RedisValue($0) } ?? .null })
        case chiredis_double: self = .double(chiredis_double_of(reply))
        case chiredis_boolean: self = .boolean(reply.pointee.integer != 0)
        default: self = .null
        }
    }
}

/// What every TLS connection of a client shares: whom it trusts, and the host that the certificate must be good for.
///
/// Not `Sendable`: it belongs to the loop's thread.
final class TLS {
    let context: UnsafeMutableRawPointer
    let host: String

    /// - Parameters:
    ///   - authorities: a PEM file; nil for the system's.
    /// - Throws: ``RedisError/Code/unavailable`` when OpenSSL refuses the set-up.
    init(host: String, authorities: String?) throws(RedisError) {
        guard let made = chiredis_tls_create(authorities) else {
            throw RedisError(.unavailable, "cannot set up TLS with the authorities of \(authorities ?? "the system")")
        }
        context = made
        self.host = host
    }

    deinit { chiredis_tls_free(context) }
}
