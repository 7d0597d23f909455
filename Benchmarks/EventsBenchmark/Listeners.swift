import CLinux
import Concurrency
import Glibc

/// Many clients of an event stream, on one thread.
final class Listeners: Sendable {
    /// What came of it.
    struct Found: Sendable {
        /// Clients that got each event exactly once.
        let complete: Int
        /// Events that a client did not get, over all clients.
        let missing: Int
        /// Events that came to a client once too often, over all clients.
        let twice: Int
        /// Milliseconds from sending to receiving, sorted.
        let times: [Double]

        func percentile(_ part: Double) -> Double {
            times.isEmpty ? 0 : times[min(times.count - 1, Int(Double(times.count) * part))]
        }
    }

    private struct State {
        var begun = 0
        var received = 0
        var isOver = false
        var sentAt: [ContinuousClock.Instant]
        var times: [Double] = []
        /// How often each event came, by client.
        var counts: [[UInt8]]
    }

    private let state: Lock<State>
    private let thread = Lock<NamedThread?>(nil)

    init(port: UInt16, count: Int, events: Int) {
        state = Lock(
            State(
                sentAt: Array(repeating: .now, count: events),
                counts: Array(repeating: Array(repeating: 0, count: events), count: count)))
        let started = NamedThread(name: "listeners") { self.run(port, count) }
        thread.withLock { $0 = started }
    }

    /// How many have been told where the stream stands.
    var begun: Int { state.withLock { $0.begun } }
    /// How many events have come, over all clients.
    var received: Int { state.withLock { $0.received } }

    /// An event is sent now.
    func sent(_ number: Int) { state.withLock { $0.sentAt[number] = .now } }

    func found() -> Found {
        state.withLock { state in
            Found(
                complete: state.counts.count { $0.allSatisfy { $0 == 1 } },
                missing: state.counts.reduce(0) { $0 + $1.count { $0 == 0 } },
                twice: state.counts.reduce(0) { $0 + $1.reduce(0) { $0 + max(0, Int($1) - 1) } },
                times: state.times.sorted())
        }
    }

    /// Ends all of them. It blocks.
    func stop() {
        state.withLock { $0.isOver = true }
        thread.withLock { $0 }?.join()
    }

    // MARK: On the thread

    private func run(_ port: UInt16, _ count: Int) {
        let epoll = epoll_create1(0)
        var clients: [Listener] = []
        for number in 0..<count {
            // One address has 1000 connections at most.
            let listener = Listener(port, from: "127.0.0.\(2 + number / 900)")
            var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u32: UInt32(number)))
            epoll_ctl(epoll, EPOLL_CTL_ADD, listener.socket, &event)
            clients.append(listener)
        }
        var ready = [epoll_event](repeating: epoll_event(), count: 256)
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while !state.withLock({ $0.isOver }) {
            let readyCount = Int(max(0, epoll_wait(epoll, &ready, 256, 100)))
            for event in ready.prefix(readyCount) {
                let number = Int(event.data.u32)
                let count = recv(clients[number].socket, &buffer, buffer.count, Int32(MSG_DONTWAIT))
                if count <= 0 {
                    epoll_ctl(epoll, EPOLL_CTL_DEL, clients[number].socket, nil)
                    continue
                }
                let (events, hasBegun) = buffer[..<count].withUnsafeBytes { clients[number].take($0) }
                let now = ContinuousClock.now
                state.withLock { state in
                    if hasBegun { state.begun += 1 }
                    state.received += events.count
                    for event in events where state.sentAt.indices.contains(event) {
                        state.counts[number][event] &+= 1
                        state.times.append(state.sentAt[event].duration(to: now) / .milliseconds(1))
                    }
                }
            }
        }
        for client in clients { close(client.socket) }
        close(epoll)
    }
}

/// One client: takes the chunks apart, then the lines.
private struct Listener {
    let socket: Int32
    private var isInBody = false
    private var hasBegun = false
    /// Of the chunk; nil while its size is read.
    private var left: Int?
    private var size = 0
    private var line: [UInt8] = []

    init(_ port: UInt16, from host: String) {
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        func address(_ host: String, _ port: UInt16) -> sockaddr_in {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            inet_pton(AF_INET, host, &address.sin_addr)
            return address
        }
        for (host, port, call) in [(host, 0, bind), ("127.0.0.1", port, connect)] {
            var address = address(host, port)
            let result = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    call(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            precondition(result == 0, "no connection: errno \(errno)")
        }
        let request = Array("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        precondition(send(socket, request, request.count, 0) == request.count, "nothing is taken: errno \(errno)")
    }

    /// The numbers of the events that end in these bytes, and whether the stream begins in them.
    mutating func take(_ bytes: UnsafeRawBufferPointer) -> (events: [Int], hasBegun: Bool) {
        var (events, rest, begins): ([Int], UnsafeRawBufferPointer.SubSequence, Bool) = ([], bytes[...], false)
        while let byte = rest.first {
            if let room = left, room > 0 {
                let part = rest.prefix(room)
                rest = rest.dropFirst(part.count)
                left = room - part.count
                for piece in part.split(separator: 10, omittingEmptySubsequences: false).enumerated() {
                    if piece.offset > 0 {
                        if let event = event() { events.append(event) }
                        if !hasBegun, line.starts(with: "id: ".utf8) { (hasBegun, begins) = (true, true) }
                        line.removeAll(keepingCapacity: true)
                    }
                    line += piece.element
                }
                continue
            }
            rest = rest.dropFirst()
            if !isInBody {
                line.append(byte)
                if line.suffix(4) == [13, 10, 13, 10] {
                    isInBody = true
                    line = []
                }
            } else if let digit = Int(String(UnicodeScalar(byte)), radix: 16) {
                (left, size) = (nil, size << 4 | digit)
            } else if byte == 10, left == nil {
                (left, size) = (size, 0)
            }
        }
        return (events, begins)
    }

    /// The number in `data: {"specversion":"1.0","id":"halcyon.jobs-0-NUMBER-ready"`.
    private func event() -> Int? {
        guard line.starts(with: "data: ".utf8) else { return nil }
        let parts = line.prefix(100).split(separator: UInt8(ascii: "-"))
        return parts.count > 2 ? Int(String(decoding: parts[2], as: UTF8.self)) : nil
    }
}
