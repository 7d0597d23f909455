import Foundation
import HalcyonKit

/// Submits a job, follows its events and writes the image to a file: client-example GATEWAY SOURCE FILE. Set HALCYON_KEY
/// if the gateway requires a key.
@main
struct Main {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count == 3, let gateway = URL(string: arguments[1]) else {
            print("usage: client-example GATEWAY SOURCE FILE")
            exit(2)
        }
        let halcyon = HalcyonClient(gateway, key: ProcessInfo.processInfo.environment["HALCYON_KEY"])
        let job = ImageJob(.init(arguments[2]), width: 400, height: 300, contentMode: .scaleAspectFill)
        // Subscribes before the job is submitted, so no event is missed.
        let events = try await halcyon.events()
        let id = try await halcyon.submit(job).id
        for try await message in events where message.event?.job?.id == id {
            switch message.event?.kind {
            case .started:
                print("started")
                continue
            case .progress(let progress):
                print("progress: \(progress.received) bytes")
                continue
            case .ready(let ready):
                print("ready")
                try await halcyon.imageData(for: ready.variants[0]).write(to: URL(filePath: arguments[3]))
                return
            case .failed(let failed):
                print("failed")
                fail("\(HalcyonError.jobFailed(failed))")
            default: fail("the job was cancelled")
            }
        }
    }

    private static func fail(_ reason: String) -> Never {
        FileHandle.standardError.write(Data("failed: \(reason)\n".utf8))
        exit(1)
    }
}
