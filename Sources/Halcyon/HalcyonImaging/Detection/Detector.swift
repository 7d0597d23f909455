import Concurrency
import FoundationEssentials
import Glibc
import HalcyonModel
import Subprocess

/// The options of the detector, a program that finds faces and other things in pictures (docs/detectors.md).
public struct DetectorOptions: Sendable {
    /// The program and its arguments; empty for no detector.
    public var command: [String] = []
    /// The name and version that the program must report, because they are part of keys.
    public var name = Variant.standardDetector
    /// The maximum memory of a process, in bytes (RLIMIT_DATA of setrlimit(2)).
    public var memory = 256 << 20
    /// The maximum time for the start of a process, and for each picture.
    public var timeLimit = Duration.seconds(5)
    /// The longer side to which pictures are reduced before they are sent, in pixels.
    public var longestSide = 640
    /// The number of pictures after which a process is replaced.
    public var pictures = 500

    /// Creates the default options.
    public init() {}
}

/// A picture for a detector.
struct DetectorPicture {
    /// The size in pixels.
    let size: PixelSize
    /// The RGB samples of 8 bits, row by row.
    let samples: [UInt8]
}

/// The failure of a detector.
struct DetectorFailure: Error, CustomStringConvertible {
    enum Cause { case start, crash, timeout, reply }

    let cause: Cause
    let description: String

    /// The failure of a job that cannot do without the detector.
    var error: JobError {
        JobError(
            cause == .timeout ? .timeout : .internal, "detecting faces failed: \(description)",
            isRetryable: cause == .crash)
    }
}

/// A pool of detector processes, which are limited and killed like render processes. Each occupies a thread of the
/// render pool while it works, so there are never more than threads.
public final class DetectorPool: Sendable {
    /// The maximum number of boxes in a reply.
    static let mostBoxes = 256
    /// The time for which a program that could not be started is not tried again.
    static let pause = Duration.seconds(10)

    /// An event for logs and metrics.
    public enum PoolEvent: Sendable, CustomStringConvertible {
        /// A detector wrote this line to standard error.
        case wrote(String)
        /// A detection failed, for this reason.
        case failed(String)
        /// A picture was completed, with a number of boxes, in this time, without waiting and starting.
        case completed(boxes: Int, Duration)

        /// The text for the log.
        public var description: String {
            switch self {
            case .wrote(let line): line
            case .failed(let reason): "failed: \(reason)"
            case .completed(let boxes, let time): "found \(boxes) in \(time)"
            }
        }
    }

    let options: DetectorOptions
    private let tell: @Sendable (PoolEvent) -> Void
    private let timers = TimerThread(name: "detector-limits")
    private let pool: ProcessPool<DetectorProcess>
    /// The reason for which the program could not be started, and the end of the pause.
    private let broken = Lock<(failure: DetectorFailure, until: ContinuousClock.Instant)?>(nil)

    /// Creates an empty pool.
    /// - Parameters:
    ///   - options: The options, with a command.
    ///   - tell: A callback for events, called on any thread.
    public init(_ options: DetectorOptions, tell: @escaping @Sendable (PoolEvent) -> Void) {
        self.options = options
        self.tell = tell
        pool = ProcessPool(requests: options.pictures)
    }

    /// The ids of the running processes.
    public var processes: [Int32] { pool.processes }

    /// Kills all processes. Call it when no rendering is in flight. Blocks the calling thread.
    public func shutdown() { pool.shutdown() }

    /// Kills the idle processes, because their memory is needed.
    func endIdle() { pool.endIdle() }

    /// Starts the program once, to check it. Blocks the calling thread.
    /// - Returns: The kinds of things that it finds.
    /// - Throws: An error whose description is the reason.
    public func probe() throws -> Set<DetectionKind> {
        let process = try start(for: nil)
        defer { pool.end(process) }
        return process.kinds
    }

    /// Finds things in a picture, on the calling thread. A crash is repeated once in a new process.
    /// - Returns: The boxes; nil if the detector does not know things of this kind.
    /// - Throws: ``DetectorFailure``; ``RenderTask/CancellationReason``.
    func find(
        _ kind: DetectionKind, in picture: DetectorPicture, _ reservation: MemoryReservation
    ) throws -> [DetectedBox]? {
        do {
            return try attempt(kind, picture, reservation)
        } catch let failure as DetectorFailure where failure.cause == .crash {
            report(failure)
            return try attempt(kind, picture, reservation)
        }
    }

    /// Logs a failure.
    func report(_ failure: DetectorFailure) { tell(.failed(failure.description)) }

    private func attempt(
        _ kind: DetectionKind, _ picture: DetectorPicture, _ reservation: MemoryReservation
    ) throws -> [DetectedBox]? {
        var share: MemoryBudget.Reservation? = try reservation.task.run(stoppedBy: reservation.memory.wake) {
            try reservation.enter(options.memory)
        }
        defer { withExtendedLifetime(share) {} }
        let process = try pool.takeIdle() ?? start(for: reservation.task)
        do {
            let boxes = try process.kinds.contains(kind) ? find(kind, in: picture, process, reservation.task) : nil
            share = nil
            pool.putBack(process, privateBytes(of: process.pid), in: reservation.memory)
            return boxes
        } catch {
            pool.end(process)
            throw error
        }
    }

    private func find(
        _ kind: DetectionKind, in picture: DetectorPicture, _ process: DetectorProcess, _ task: RenderTask
    ) throws -> [DetectedBox] {
        let started = ContinuousClock.now
        let boxes = try limited(process, task) { try process.find(kind, in: picture) }
        tell(.completed(boxes: boxes.count, .now - started))
        return boxes
    }

    /// Runs a step of a process, which is killed when the time has passed or the rendering is stopped.
    private func limited<Result>(
        _ process: DetectorProcess, _ task: RenderTask?, _ body: () throws -> Result
    ) throws -> Result {
        let isLate = Lock(false)
        let timer = timers.set(at: .now + options.timeLimit) {
            isLate.withLock { $0 = true }
            process.kill()
        }
        defer { timers.cancel(timer) }
        do {
            guard let task else { return try body() }
            return try task.run(stoppedBy: process.kill, body)
        } catch let error as MessageError {
            if isLate.withLock({ $0 }) {
                throw DetectorFailure(
                    cause: .timeout,
                    description: "the detector takes longer than \(options.timeLimit); see images.detectorTimeout")
            }
            guard error == .ended else {
                throw DetectorFailure(cause: .reply, description: "the reply cannot be read (\(error))")
            }
            throw DetectorFailure(cause: .crash, description: "the detector ended: \(pool.end(process))")
        }
    }

    /// Starts a process.
    /// - Parameter task: The rendering that waits for it.
    private func start(for task: RenderTask?) throws -> DetectorProcess {
        if let broken = broken.withLock({ $0 }), broken.until > .now { throw broken.failure }
        do {
            let process: DetectorProcess
            do {
                process = try DetectorProcess(options) { [tell] in tell(.wrote($0)) }
            } catch {
                throw DetectorFailure(cause: .start, description: "\(error)")
            }
            guard pool.add(process) else { throw RenderTask.CancellationReason.cancelled }
            do {
                try limited(process, task) { try process.greet(options.name) }
            } catch {
                pool.end(process)
                throw error
            }
            return process
        } catch let failure as DetectorFailure {
            let failure = DetectorFailure(
                cause: failure.cause == .timeout ? .timeout : .start, description: "start: \(failure)")
            broken.withLock { $0 = (failure, .now + Self.pause) }
            throw failure
        }
    }
}

/// A running detector.
private final class DetectorProcess: PooledProcess {
    private let process: ChildProcess
    private let socket: MessageSocket
    private let state = Lock((kinds: Set<DetectionKind>(), answered: 0))

    /// Starts the process. Blocks the calling thread.
    /// - Throws: ``ChildProcessError`` or ``MessageError``.
    init(_ options: DetectorOptions, hears: @escaping @Sendable (String) -> Void) throws {
        let (own, childs) = try MessageSocket.pair()
        defer { close(childs) }
        socket = own
        var child = RenderProcessOptions()
        child.memory = options.memory
        process = try ChildProcess.startBlocking(
            options.command[0], Array(options.command.dropFirst()), options: child.process(input: childs, hears: hears))
        makeFirstVictim(of: process.pid)
    }

    var pid: Int32 { process.pid }
    var isRunning: Bool { process.isRunning }
    /// The kinds of things that it finds.
    var kinds: Set<DetectionKind> { state.withLock { $0.kinds } }
    var answered: Int { state.withLock { $0.answered } }

    @Sendable func kill() {
        process.send(SIGKILL)
        // A child of a wrapper script may still have the other end open.
        socket.shutdown()
    }

    func exit() -> ChildProcess.Exit { process.exitBlocking() }

    /// Receives the greeting.
    /// - Throws: ``MessageError``; ``DetectorFailure`` if it is invalid or names another detector.
    func greet(_ name: String) throws {
        let greeting: Greeting = try receive()
        guard greeting.protocol == 1 else {
            throw DetectorFailure(cause: .reply, description: "unknown protocol version \(greeting.protocol)")
        }
        guard greeting.detector == name else {
            throw DetectorFailure(
                cause: .reply,
                description: "the detector is \"\(greeting.detector.prefix(64))\"; images.detectorName is \"\(name)\"")
        }
        state.withLock { $0.kinds = Set(greeting.kinds.compactMap(DetectionKind.init(rawValue:))) }
    }

    /// Finds things in a picture.
    /// - Throws: ``MessageError``; ``DetectorFailure`` for an error of the detector or an invalid reply.
    func find(_ kind: DetectionKind, in picture: DetectorPicture) throws -> [DetectedBox] {
        let (width, height) = (picture.size.width, picture.size.height)
        // Written by hand, so that detectors need no JSON library.
        let header = #"{"detect":"\#(kind.rawValue)","width":\#(width),"height":\#(height),"bands":3}"#
        try socket.send(MessageSocket.Message(header: Array(header.utf8), bodies: [picture.samples]))
        let reply: Reply = try receive()
        if let error = reply.error {
            throw DetectorFailure(cause: .reply, description: "the detector reports: \(error.prefix(200))")
        }
        guard let boxes = reply.boxes, boxes.count <= DetectorPool.mostBoxes else {
            throw DetectorFailure(cause: .reply, description: "expected at most \(DetectorPool.mostBoxes) boxes")
        }
        state.withLock { $0.answered += 1 }
        return try boxes.map { box in
            guard box.width > 0, box.height > 0, (0...1).contains(box.confidence),
                box.x > -Double(width), box.x + box.width < 2 * Double(width),
                box.y > -Double(height), box.y + box.height < 2 * Double(height)
            else { throw DetectorFailure(cause: .reply, description: "a box is empty or outside of the picture") }
            return DetectedBox(
                x: box.x / Double(width), y: box.y / Double(height), width: box.width / Double(width),
                height: box.height / Double(height), confidence: box.confidence)
        }
    }

    private func receive<Value: Decodable>() throws -> Value {
        var limits = MessageSocket.Limits(bytes: 0)
        limits.bodies = 0
        guard let message = try socket.receive(limits) else { throw MessageError.ended }
        do {
            return try message.value(Value.self)
        } catch {
            throw DetectorFailure(cause: .reply, description: "the reply is not the expected JSON")
        }
    }

    private struct Greeting: Decodable {
        var `protocol`: Int
        var detector: String
        var kinds: [String]
    }

    private struct Reply: Decodable {
        struct Box: Decodable {
            var x, y, width, height, confidence: Double
        }

        var boxes: [Box]?
        var error: String?
    }
}
