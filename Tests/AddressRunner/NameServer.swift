import Concurrency
import Glibc
import Subprocess

/// A name server on 127.0.0.1:53 (RFC 1035). Names contain their addresses: `4-5db8d822.test` has that IPv4 address,
/// `6-` and 32 digits that IPv6 address, and several joined by `.` all of them. `flip-A-B.test` resolves to A at the
/// first query and to B afterwards. Other names have no addresses.
final class NameServer: Sendable {
    private let asked = Lock<Set<String>>([])

    func start() {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        let bound = LoopbackAddress.with(port: 53) { bind(socket, $0, $1) }
        precondition(bound == 0, "cannot bind port 53: errno \(errno)")
        _ = NamedThread(name: "names") { [self] in
            var peer = sockaddr_in()
            while true {
                var query = [UInt8](repeating: 0, count: 512)
                var length = socklen_t(MemoryLayout<sockaddr_in>.size)
                let count = withUnsafeMutablePointer(to: &peer) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        recvfrom(socket, &query, query.count, 0, $0, &length)
                    }
                }
                guard count > 16, let answer = answer(to: Array(query.prefix(count))) else { continue }
                _ = withUnsafePointer(to: &peer) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        sendto(socket, answer, answer.count, 0, $0, length)
                    }
                }
            }
        }
    }

    private func answer(to query: [UInt8]) -> [UInt8]? {
        var labels: [String] = []
        var place = 12
        while place < query.count, query[place] > 0 {
            let end = place + 1 + Int(query[place])
            guard end < query.count else { return nil }
            labels.append(String(decoding: query[place + 1..<end], as: UTF8.self).lowercased())
            place = end
        }
        guard place + 4 < query.count else { return nil }
        let question = Array(query[12..<place + 5])
        let isSix = query[place + 2] == 28
        let addresses = addresses(of: labels, isSix: isSix)
        let code: UInt8 = labels.last == "test" ? 0 : 3
        var answer = Array(query[..<2]) + [0x81, 0x80 | code, 0, 1, 0, UInt8(addresses.count), 0, 0, 0, 0] + question
        for address in addresses {
            // The name of the question, its type, class IN, a TTL of 0.
            answer += [0xc0, 12, 0, isSix ? 28 : 1, 0, 1, 0, 0, 0, 0, 0, UInt8(address.count)] + address
        }
        return answer
    }

    private func addresses(of labels: [String], isSix: Bool) -> [[UInt8]] {
        labels.dropLast().compactMap { label in
            var parts = label.split(separator: "-").map(String.init)
            if parts.first == "flip", parts.count == 3, !isSix {
                let isFirst = asked.withLock { $0.insert(label).inserted }
                parts = ["4", parts[isFirst ? 1 : 2]]
            }
            guard parts.count == 2, parts[0] == (isSix ? "6" : "4") else { return nil }
            let digits = Array(parts[1])
            return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
                UInt8(String(digits[$0...$0 + 1]), radix: 16)
            }
        }
    }
}
