import CCurl
import Glibc

// libcurl calls these on the client's thread. Plain functions: a closure made in isolated code would trap.

private func transfer(_ context: UnsafeMutableRawPointer?) -> Transfer {
    Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue()
}

func onBody(_ bytes: UnsafeMutablePointer<CChar>?, _: Int, _ count: Int, _ context: UnsafeMutableRawPointer?) -> Int {
    switch transfer(context).received(bodyPart: UnsafeRawBufferPointer(start: bytes, count: count)) {
    case .accepted: return count
    case .paused: return Int(CURL_WRITEFUNC_PAUSE)
    // Another count than was given stops the transfer.
    case .refused: return 0
    }
}

func onHeader(_ bytes: UnsafeMutablePointer<CChar>?, _: Int, _ count: Int, _ context: UnsafeMutableRawPointer?) -> Int {
    transfer(context).received(headLine: UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
}

func onUpload(_ buffer: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?)
    -> Int
{
    transfer(context).upload(into: UnsafeMutableRawBufferPointer(start: buffer, count: size * count))
}

func onRewind(_ context: UnsafeMutableRawPointer?, _ offset: curl_off_t, _ origin: Int32) -> Int32 {
    let done = origin == SEEK_SET && transfer(context).rewind(to: Int(offset))
    return done ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
}

func onProgress(
    _ context: UnsafeMutableRawPointer?, _: curl_off_t, _ received: curl_off_t, _: curl_off_t, _: curl_off_t
) -> Int32 {
    transfer(context).received(rawBytes: Int(received)) ? 0 : 1
}

func onDial(
    _ context: UnsafeMutableRawPointer?, _: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let address else { return CURL_SOCKET_BAD }
    let bytes = UnsafeRawBufferPointer(start: ccurl_address(address), count: Int(address.pointee.addrlen))
    guard let wanted = SocketAddress(family: address.pointee.family, bytes), transfer(context).mayDial(wanted) else {
        return CURL_SOCKET_BAD
    }
    let type = address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
    return socket(address.pointee.family, type, address.pointee.protocol)
}

func onConnected(
    _ context: UnsafeMutableRawPointer?, _: UnsafeMutablePointer<CChar>?, _: UnsafeMutablePointer<CChar>?, _: Int32,
    _: Int32
) -> Int32 {
    transfer(context).connected()
    return CURL_PREREQFUNC_OK
}
