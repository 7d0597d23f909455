import CCurl
import Glibc
import Threads

/// The multi handle of a client and the one thread that touches it: connections, looked-up names and running transfers are its
/// own.
///
/// `@unchecked Sendable`: `shared` is a lock; everything else is touched only on the engine's thread once that runs.
final class Engine: @unchecked Sendable {
    /// What the client posts to the thread.
    enum Letter: Sendable {
        case start(Transfer)
        case cancel(Transfer)
        /// It may hold so many bytes now.
        case resume(Transfer, admitted: Int)
    }

    private struct Shared {
        /// Nil once the thread is done with it; a wake-up must not come later.
        var multi: UnsafeMutableRawPointer?
        var isStopping = false
    }

    /// Handles kept for later transfers.
    private static let spareLimit = 64

    private let multi: UnsafeMutableRawPointer
    private let shared: Lock<Shared>
    private let mailbox: Mailbox<Letter>
    private let settings: CurlSettings
    private let thread = Lock<WorkThread?>(nil)

    /// By the easy handle, which is all that libcurl names a finished one by.
    private var running: [UnsafeMutableRawPointer: Transfer] = [:]
    private var spare: [EasyHandle] = []

    /// Starts the thread, which runs until ``stop()``.
    init(_ mailbox: Mailbox<Letter>, _ settings: CurlSettings) {
        _ = Self.library
        guard let made = curl_multi_init() else { fatalError("no memory for libcurl") }
        multi = made
        shared = Lock(Shared(multi: made))
        self.mailbox = mailbox
        self.settings = settings
        _ = ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, settings.idleConnections)
        _ = ccurl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, settings.maxConnectionsPerHost)
        let started = WorkThread(name: "curl") { self.run() }
        thread.withLock { $0 = started }
    }

    /// libcurl wants to be set up once, before anything else. It is never torn down: the process ends first.
    private static let library: CURLcode = curl_global_init(Int(CURL_GLOBAL_DEFAULT))

    /// Has the thread look at its mail.
    func wake() {
        shared.withLock { shared in
            if let multi = shared.multi { curl_multi_wakeup(multi) }
        }
    }

    /// Ends the thread and every transfer that runs, and waits for that, on another thread.
    func stop() async {
        shared.withLock { $0.isStopping = true }
        wake()
        await withCheckedContinuation { continuation in
            _ = WorkThread(name: "curl-stop", stackSize: 1 << 16) {
                self.thread.withLock { $0 }?.join()
                continuation.resume()
            }
        }
    }

    // MARK: The thread

    private func run() {
        while !shared.withLock({ $0.isStopping }) {
            readMail()
            var count: Int32 = 0
            curl_multi_perform(multi, &count)
            finishTransfers()
            // It wakes by itself for libcurl's own timers. Mail that came meanwhile has woken it in advance.
            curl_multi_poll(multi, nil, 0, 60_000, nil)
        }
        for transfer in running.values { drop(transfer, .closed) }
        spare = []
        shared.withLock { $0.multi = nil }
        curl_multi_cleanup(multi)
    }

    private func readMail() {
        for letter in mailbox.take() {
            switch letter {
            case .start(let transfer): start(transfer)
            // One that came before its transfer is passed over. The caller posts it again, behind that.
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
            // What it points to is gone with the handle's removal.
            let (handle, result) = (message.pointee.easy_handle!, ccurl_result(message))
            guard let transfer = running[handle], let easy = remove(transfer) else { continue }
            transfer.finish(result, easy)
            keep(easy)
        }
    }

    /// Ends a transfer that runs, and with it its connection if that is in the middle of a response.
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
