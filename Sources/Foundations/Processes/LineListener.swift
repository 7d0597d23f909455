import Glibc
import Threads

/// Hears what a child writes to one of its streams, line by line.
struct LineListener {
    /// What the child is to have as the stream.
    let childsEnd: Int32
    private let ownEnd: Int32
    private let tell: @Sendable (String) -> Void

    /// nil when no descriptor is left.
    init?(_ tell: @escaping @Sendable (String) -> Void) {
        guard let ends = socketPair() else { return nil }
        (ownEnd, childsEnd) = ends
        self.tell = tell
    }

    /// Lets the child's end go and reads until nobody has it any more, on a thread of its own. To be called once, when
    /// the child runs or could not be started.
    func listen() {
        close(childsEnd)
        _ = WorkThread(name: "child-output", stackSize: 1 << 17) { [ownEnd, tell] in
            defer { close(ownEnd) }
            var rest: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4096)
            while case let count = read(ownEnd, &buffer, buffer.count), count > 0 || (count < 0 && errno == EINTR) {
                rest += buffer.prefix(max(0, count))
                while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    tell(String(decoding: rest[..<end], as: UTF8.self))
                    rest.removeFirst(end + 1)
                }
                if rest.count >= buffer.count {
                    tell(String(decoding: rest, as: UTF8.self))
                    rest = []
                }
            }
            if !rest.isEmpty { tell(String(decoding: rest, as: UTF8.self)) }
        }
    }
}

/// Two stream sockets that are connected, closed in programs that are run; nil when no descriptor is left.
func socketPair() -> (Int32, Int32)? {
    var ends: [Int32] = [0, 0]
    // Not a pipe: only this is kept from other children in one step, so that its end is the child's end.
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    return socketpair(AF_UNIX, kind, 0, &ends) == 0 ? (ends[0], ends[1]) : nil
}
