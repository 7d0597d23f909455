import CLinux
import Glibc
import HalcyonModel
import Subprocess

/// The main function of a render process. Its standard input is the socket to its parent, in both directions.
public enum RenderProcessProgram {
    /// Serves requests on the calling thread until the parent closes the socket.
    /// - Parameter extensions: The extensions of the parent's renderer.
    /// - Returns: The exit code of the process.
    public static func run(_ extensions: Extensions = Extensions()) -> Int32 {
        // If the process group is asked to stop, the parent decides, because it may want this rendering to finish.
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
            complain("render-child is for internal use by other commands: \(error)")
            return 2
        }
    }

    private static func answer(
        to message: MessageSocket.Message, within memory: GrantedMemory?, _ extensions: Extensions
    ) throws -> MessageSocket.Message {
        let request = try message.value(RenderRequest.self)
        CPULimit.limit(to: request.limits.renderTime)
        let asked = message.bodies.reduce(0) { $0 + $1.count }
        memory?.limit(to: request.memory + asked)
        let answer = try answer(to: request, message.bodies, within: memory, extensions)
        // The source and the files are freed with the messages.
        return try RenderReply.message(answer, privateBytes: max(0, privateBytes() - asked - answer.bytes))
    }

    private static func answer(
        to request: RenderRequest, _ bodies: [[UInt8]], within memory: GrantedMemory?, _ extensions: Extensions
    ) throws -> RenderReply.RenderResponse {
        let (result, peak) = peakPrivateBytes { () -> Result<RenderReply.RenderResponse, any Error> in
            Result {
                let (renderer, plan) = try request.plan(bodies[0], extensions)
                guard plan.memory <= request.memory else { return .needs(memory: plan.memory) }
                return .rendered(try renderer.render(plan, assets: request.assets(bodies)))
            }
        }
        do {
            return try result.get()
        } catch let failure as JobError {
            // Some encoders fail without telling that an allocation failed.
            let isExhausted = failure.code == .internal && peak.map { memory?.isExhausted(by: $0) == true } == true
            guard failure.isOutOfMemory || isExhausted else { return .failed(failure) }
            let most = request.limits.memory
            guard request.memory >= most else { return .needs(memory: most) }
            return .failed(JobError(beyondMemory: request.memory))
        }
    }

    /// Makes the kernel kill this process, and not the worker, when the machine runs out of memory (proc(5),
    /// oom_score_adj). Does nothing if /proc is not writable.
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
