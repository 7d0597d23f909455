import CLinux
import Glibc
import HalcyonImaging
import HalcyonModel
import Processes

/// What a child does all its life. Its standard input is the socket to its parent, for both directions.
public enum RenderChildProgram {
    /// Answers requests on the calling thread until the parent closes the socket.
    /// - Parameter extensions: those that the parent's renderer has.
    /// - Returns: the process's exit code.
    public static func run(_ extensions: Extensions = Extensions()) -> Int32 {
        // A group that is asked to end is asked through its parent, which may want this rendering finished.
        signal(SIGTERM, SIG_IGN)
        clinux_name_thread("render-child")
        volunteerForTheOutOfMemoryKiller()
        let socket = MessageSocket(owning: STDIN_FILENO)
        do {
            while let message = try socket.receive(MessageSocket.Limits(bytes: .max)) {
                try socket.send(answer(to: message, on: socket, extensions))
            }
            return 0
        } catch MessageError.ended {
            return 0
        } catch {
            complain("render-child is a part of other commands and of no use by itself: \(error)")
            return 2
        }
    }

    private static func answer(
        to message: MessageSocket.Message, on socket: MessageSocket, _ extensions: Extensions
    ) throws -> MessageSocket.Message {
        let request = try message.value(RenderRequest.self)
        ProcessorTime.limit(to: request.limits.renderTime)
        let result: Result<Rendering, Failure>
        do {
            let (renderer, plan) = try request.plan(message.bodies[0], extensions)
            try socket.send(RenderReply.message(needing: plan.memory, residentBytes: residentBytes()))
            // The parent says when there is room, and nothing else.
            guard try socket.receive(MessageSocket.Limits(bytes: 0)) != nil else { throw MessageError.ended }
            result = .success(try renderer.render(plan, assets: request.assets(message.bodies)))
        } catch let failure as Failure {
            result = .failure(failure)
        }
        return try RenderReply.message(result, residentBytes: residentBytes())
    }

    /// When the machine has no memory left, this process is to go and not the worker, which has others' work too
    /// (proc(5), oom_score_adj). Where /proc is closed, things stay as they are.
    private static func volunteerForTheOutOfMemoryKiller() {
        let descriptor = open("/proc/self/oom_score_adj", O_WRONLY)
        guard descriptor >= 0 else { return }
        _ = write(descriptor, "1000", 4)
        close(descriptor)
    }

    private static func complain(_ text: String) {
        let line = Array("\(text)\n".utf8)
        _ = write(STDERR_FILENO, line, line.count)
    }
}
