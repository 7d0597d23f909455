import CCurl
import Concurrency
import Glibc

/// A client's libcurl multi handle, and the only thread that uses it. It owns the connections, the DNS cache and the
/// running transfers.
///
/// `@unchecked Sendable`: `shared` is a lock, and everything else is accessed only on the handle's thread once that
/// runs.
final class MultiHandle: @unchecked Sendable {
    /// A message from the client to the thread.
    enum Message: Sendable {
        case start(Transfer)
        case cancel(Transfer)
        /// Lets a paused transfer hold up to `admitted` bytes.
        case resume(Transfer, admitted: Int)
    }

    private struct Shared {
        /// Nil once the thread has stopped using it, after which it must not be woken up.
        var multi: UnsafeMutableRawPointer?
        var isStopping = false
    }

    /// The number of idle handles that are retained for later transfers.
    private static let spareLimit = 64

    private let multi: UnsafeMutableRawPointer
    private let shared: Lock<Shared>
    private let queue: BatchQueue<Message>
    private let settings: CurlSettings
    private let thread = Lock<NamedThread?>(nil)

    /// Keyed by the easy handle, which is how libcurl identifies a finished transfer.
    private var running: [UnsafeMutableRawPointer: Transfer] = [:]
    private var spare: [EasyHandle] = []

    /// Starts the thread, which runs until ``stop()``.
    init(_ queue: BatchQueue<Message>, _ settings: CurlSettings) {
        _ = Self.library
        guard let made = curl_multi_init() else { fatalError("out of memory while initializing libcurl") }
        multi = made
        shared = Lock(Shared(multi: made))
        self.queue = queue
        self.settings = settings
        _ = ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, settings.idleConnections)
        _ = ccurl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, settings.maxConnectionsPerHost)
        let started = NamedThread(name: "curl") { self.run() }
        thread.withLock { $0 = started }
    }

    /// libcurl must be initialized once before use. It is never cleaned up, because it is needed until the process
    /// exits.
    private static let library: CURLcode = curl_global_init(Int(CURL_GLOBAL_DEFAULT))

    /// Wakes the thread to process its messages.
    func wake() {
        shared.withLock { shared in
            if let multi = shared.multi { curl_multi_wakeup(multi) }
        }
    }

    /// Stops the thread and every running transfer, and waits for it on another thread.
    func stop() async {
        shared.withLock { $0.isStopping = true }
        wake()
        await withCheckedContinuation { continuation in
            _ = NamedThread(name: "curl-stop") {
                self.thread.withLock { $0 }?.join()
                continuation.resume()
            }
        }
    }

    // MARK: Thread

    private func run() {
        while !shared.withLock({ $0.isStopping }) {
            readMail()
            var count: Int32 = 0
            curl_multi_perform(multi, &count)
            finishTransfers()
            // Waits for activity or libcurl's own timers. Messages posted in the meantime have already triggered a
            // wake-up.
            curl_multi_poll(multi, nil, 0, 60_000, nil)
        }
        for transfer in running.values { drop(transfer, .closed) }
        spare = []
        shared.withLock { $0.multi = nil }
        curl_multi_cleanup(multi)
    }

    private func readMail() {
        for message in queue.drain() {
            switch message {
            case .start(let transfer): start(transfer)
            // A cancellation that arrived before its transfer is ignored. The caller posts it again after the transfer.
            case .cancel(let transfer): if transfer.isHandedIn { drop(transfer, .cancelled) }
            case .resume(let transfer, let bytes): transfer.resume(holding: bytes)
            }
        }
    }

    private func start(_ transfer: Transfer) {
        transfer.isHandedIn = true
        do throws(CurlError) {
            let easy = if let kept = spare.popLast() { kept } else { try EasyHandle() }
            try easy.prepare(transfer, settings)
            transfer.begin(on: easy)
            let result = curl_multi_add_handle(multi, easy.handle)
            guard result == CURLM_OK else {
                _ = transfer.end()
                throw CurlError(.other, String(cString: curl_multi_strerror(result)))
            }
            running[easy.handle] = transfer
        } catch {
            transfer.answer(.failure(error))
        }
    }

    private func finishTransfers() {
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE else { continue }
            // The memory of the message is invalid after the handle is removed.
            let (handle, result) = (message.pointee.easy_handle!, ccurl_result(message))
            guard let transfer = running[handle], let easy = remove(transfer) else { continue }
            transfer.finish(result, easy)
            keep(easy)
        }
    }

    /// Ends a running transfer, and closes its connection if that is in the middle of a response.
    private func drop(_ transfer: Transfer, _ error: CurlError) {
        if let easy = remove(transfer) { keep(easy) }
        transfer.answer(.failure(error))
    }

    private func remove(_ transfer: Transfer) -> EasyHandle? {
        guard let easy = transfer.end() else { return nil }
        running[easy.handle] = nil
        curl_multi_remove_handle(multi, easy.handle)
        return easy
    }

    private func keep(_ easy: EasyHandle) {
        guard spare.count < Self.spareLimit else { return }
        easy.reset()
        spare.append(easy)
    }
}
