import CHiredis
import Concurrency
import Glibc

/// An hiredis context on an event loop: sends commands, and delivers replies and the end of the connection. It is used
/// once and never reconnects.
///
/// It belongs to the loop's thread, and its handler is called there. It is not `Sendable`, so the compiler confines it
/// to the actor that created it.
final class Connection {
    /// An event of a connection. ``closed(_:)`` is the last event, and never follows ``close()``.
    enum Event {
        case connected
        case reply(RedisValue)
        case closed(RedisError)
    }

    /// The address to connect to. Not a host name, because resolving names blocks.
    enum Address: Hashable, Sendable {
        case ip(String, port: UInt16)
        case unix(path: String)
    }

    /// True if hiredis was built with TLS support.
    static var hasTLS: Bool { chiredis_has_tls() }

    private let loop: EventLoop
    private let descriptor: Int32
    private let tls: TLS?
    /// Valid as long as the context.
    private let tlsSession: UnsafeMutableRawPointer?
    private var handler: ((Event) -> Void)?
    /// Owned by hiredis, which frees the context after calling ``contextIsGone()``.
    private var context: UnsafeMutablePointer<redisAsyncContext>?
    private var words = ArgumentBuffer()
    private var wanted: EventLoop.Readiness = []
    private var watched: EventLoop.Readiness = []
    private var isConnected = false
    /// hiredis may free the context during a call from here. No other call may begin before that one has returned.
    private var isInsideHiredis = false

    /// The time at which bytes last arrived from the server.
    private(set) var lastHeard = ContinuousClock.now

    /// Starts to connect. `handler` is retained until the connection is closed.
    /// - Throws: ``RedisError/Code/unavailable`` if the system call fails immediately.
    init(
        to address: Address, tls: TLS?, on loop: EventLoop, handler: @escaping (Event) -> Void
    ) throws(RedisError) {
        let made =
            switch address {
            case .ip(let host, let port): redisAsyncConnect(host, Int32(port))
            case .unix(let path): redisAsyncConnectUnix(path)
            }
        guard let made else { throw RedisError(.unavailable, "out of memory while creating a connection") }
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

    /// Queues a command after those before it. ``flush()`` sends the queued commands. Has no effect on a closed
    /// connection.
    func send(_ command: [RedisArgument]) {
        guard let context else { return }
        words.withWords(command) { count, words, lengths in
            _ = redisAsyncCommandArgv(context, onReply, nil, count, words, lengths)
        }
    }

    /// Writes queued commands as far as the socket accepts them. The event loop writes the rest.
    func flush() {
        guard !isInsideHiredis, let context else { return }
        if isConnected && wanted.contains(.writable) { insideHiredis { redisAsyncHandleWrite(context) } }
        updateWatch()
    }

    /// Closes the connection. The handler is not called again.
    func close() {
        handler = nil
        if let context { redisAsyncFree(context) }
    }

    /// Closes the connection because of `error`, and reports it to the handler.
    func fail(_ error: RedisError) {
        let handler = handler
        close()
        handler?(.closed(error))
    }

    // MARK: Event loop

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

    /// Updates epoll if hiredis' interest has changed. hiredis reports its interest once per command.
    private func updateWatch() {
        guard context != nil, wanted != watched else { return }
        watched = wanted
        loop.watch(descriptor, for: wanted) { [self] in ready($0) }
    }

    // MARK: Callbacks of hiredis

    fileprivate func want(_ readiness: EventLoop.Readiness) { wanted.formUnion(readiness) }

    fileprivate func unwant(_ readiness: EventLoop.Readiness) { wanted.subtract(readiness) }

    fileprivate func connected() {
        isConnected = true
        handler?(.connected)
    }

    fileprivate func received(_ reply: UnsafeMutablePointer<redisReply>) {
        handler?(.reply(RedisValue(reply)))
    }

    /// Called before hiredis frees the context.
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
            return RedisError(.unavailable, "server certificate rejected: \(String(cString: complaint))")
        }
        let text = Self.text(of: context)
        let message = text.isEmpty ? "connection closed by the server" : text
        // Every other error counts as an unavailable connection, even an error that the server sends unasked, such as
        // "ERR max number of clients reached".
        return RedisError(context.pointee.c.err == REDIS_ERR_PROTOCOL ? .protocolError : .unavailable, message)
    }

    /// The error text of hiredis.
    private static func text(of context: UnsafeMutablePointer<redisAsyncContext>) -> String {
        withUnsafeBytes(of: context.pointee.c.errstr) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

// C calls these on the loop's thread. They are plain functions, because a closure created in isolated code would trap.

private func connection(_ context: UnsafeMutableRawPointer?) -> Connection {
    Unmanaged<Connection>.fromOpaque(context!).takeUnretainedValue()
}

private func addRead(_ own: UnsafeMutableRawPointer?) { connection(own).want(.readable) }
private func delRead(_ own: UnsafeMutableRawPointer?) { connection(own).unwant(.readable) }
private func addWrite(_ own: UnsafeMutableRawPointer?) { connection(own).want(.writable) }
private func delWrite(_ own: UnsafeMutableRawPointer?) { connection(own).unwant(.writable) }
private func cleanup(_ own: UnsafeMutableRawPointer?) { connection(own).contextIsGone() }

private func onConnect(_ context: UnsafePointer<redisAsyncContext>?, _ status: Int32) {
    // The cleanup that follows reports a failure with its reason.
    if status == REDIS_OK { connection(context!.pointee.data).connected() }
}

private func onReply(
    _ context: UnsafeMutablePointer<redisAsyncContext>?, _ reply: UnsafeMutableRawPointer?,
    _: UnsafeMutableRawPointer?
) {
    // A missing reply means that the context is being freed, and the connection may be gone already.
    guard let reply else { return }
    connection(context!.pointee.data).received(reply.assumingMemoryBound(to: redisReply.self))
}

/// Converts the arguments of a command into the pointers and lengths that `redisAsyncCommandArgv` expects.
///
/// Short arguments are collected in one buffer, which is reused for the next command. Long arguments are passed by
/// pointer without a copy.
struct ArgumentBuffer {
    /// The largest argument in bytes that is copied rather than passed by pointer.
    private static let copied = 512
    /// The largest buffer capacity in bytes that is retained between commands.
    private static let kept = 1 << 16

    private var text: [UInt8] = []
    private var lengths: [Int] = []
    private var pointers: [UnsafePointer<CChar>?] = []

    /// Calls `body` with the arguments, which are valid only during the call.
    mutating func withWords<Result>(
        _ words: [RedisArgument],
        _ body: (Int32, UnsafeMutablePointer<UnsafePointer<CChar>?>, UnsafePointer<Int>) -> Result
    ) -> Result {
        precondition(!words.isEmpty, "a command must have at least one argument")
        gather(words)
        defer { if text.capacity > Self.kept { text = [] } }
        return text.withUnsafeBufferPointer { text in
            // An empty buffer may have no address, and hiredis copies nothing from it.
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

    /// Fills in the pointers, with one nested call for each long argument so that its storage stays valid.
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
    /// Copies an hiredis reply, which hiredis frees when the callback returns.
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

/// The state that all TLS connections of a client share: the trusted authorities, and the host name that the
/// certificate must match.
///
/// It is not `Sendable`, because it belongs to the loop's thread.
final class TLS {
    let context: UnsafeMutableRawPointer
    let host: String

    /// Creates a TLS context.
    /// - Parameters:
    ///   - authorities: a PEM file; nil for the authorities of the system.
    /// - Throws: ``RedisError/Code/unavailable`` if OpenSSL rejects the configuration.
    init(host: String, authorities: String?) throws(RedisError) {
        guard let made = chiredis_tls_create(authorities) else {
            throw RedisError(.unavailable, "cannot load the TLS authorities of \(authorities ?? "the system")")
        }
        context = made
        self.host = host
    }

    deinit { chiredis_tls_free(context) }
}
