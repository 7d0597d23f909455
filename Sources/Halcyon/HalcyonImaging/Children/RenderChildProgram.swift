import CLinux
import Glibc
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
        // The shadow of a sanitizer is larger than any limit.
        let memory = clinux_has_sanitizer() ? nil : GrantedMemory()
        let socket = MessageSocket(owning: STDIN_FILENO)
        do {
            while let message = try socket.receive(MessageSocket.Limits(bytes: .max)) {
                try socket.send(answer(to: message, within: memory, extensions))
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
        to message: MessageSocket.Message, within memory: GrantedMemory?, _ extensions: Extensions
    ) throws -> MessageSocket.Message {
        let request = try message.value(RenderRequest.self)
        ProcessorTime.limit(to: request.limits.renderTime)
        let asked = message.bodies.reduce(0) { $0 + $1.count }
        memory?.limit(to: request.memory + asked)
        let answer = try answer(to: request, message.bodies, extensions)
        // The files go with the messages.
        return try RenderReply.message(answer, privateBytes: max(0, privateBytes() - asked - answer.bytes))
    }

    private static func answer(
        to request: RenderRequest, _ bodies: [[UInt8]], _ extensions: Extensions
    ) throws -> RenderReply.Answer {
        do {
            let (renderer, plan) = try request.plan(bodies[0], extensions)
            guard plan.memory <= request.memory else { return .needs(memory: plan.memory) }
            return .rendered(try renderer.render(plan, assets: request.assets(bodies)))
        } catch let failure as Failure {
            guard failure.isOutOfMemory else { return .failed(failure) }
            let most = request.limits.memory
            guard request.memory >= most else { return .needs(memory: most) }
            return .failed(Failure(beyondMemory: request.memory))
        }
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
