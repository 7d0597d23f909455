import CMicroHTTP
import Glibc

/// An answer of a status and nothing else, written past libmicrohttpd: for requests that are not complete, which it cannot
/// answer.
enum StatusLine {
    static func send(_ status: Int, to socket: Int32) {
        let reason = MHD_get_reason_phrase_for(UInt32(status)).map { String(cString: $0) } ?? ""
        var text = "HTTP/1.1 \(status) \(reason)\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        // As much as the kernel takes: who does not read does not learn why.
        text.withUTF8 { _ = Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)) }
        shutdown(socket, Int32(SHUT_WR))
    }
}
