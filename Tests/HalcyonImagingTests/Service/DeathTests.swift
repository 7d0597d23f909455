import Glibc
import HalcyonImaging
import HalcyonModel
import Subprocess
import TestSupport
import Testing

/// What happens when a child dies or goes mad in the middle of a rendering.
@Suite(.limitedParallelism) struct DeathTests {
    private let variant = filling(20, 20, as: .jpeg)

    @Test func `what is killed from outside is rendered again in a fresh child`() async throws {
        let (source, folder) = (try await Pictures.noise(), TemporaryFolder("killed"))
        // The first one takes the order and never comes to an end.
        let script = #"mkdir "$0/was-here" 2>/dev/null && exec sleep 1000; exec "$1" render-child"#
        try await RenderFixture.with(
            program: "/bin/sh", arguments: ["-c", script, folder.path, HalcyonExecutable.path]
        ) { fixture in
            let task = Task { try await fixture.renderInChild(source, variant) }
            let first = try await fixture.child()
            try await until("it waits") { Machine.text("/proc/\(first)/cmdline").hasPrefix("sleep") }
            kill(first, SIGKILL)
            let image = try await task.value
            #expect(image.size == PixelSize(width: 20, height: 20))
            let second = try await fixture.child()
            #expect(second != first)
            #expect(fixture.notes == ["crashed while rendering: signal 9"])
        }
        await folder.remove()
    }

    @Test func `a picture that crashes two children is corrupt`() async throws {
        let source = try await Pictures.noise()
        let script = "echo the last words >&2; kill -SEGV $$"
        try await RenderFixture.with(program: "/bin/sh", arguments: ["-c", script]) { fixture in
            let failure = await fixture.failure(source, variant)
            #expect(failure?.code == .corruptImage && failure?.message.contains("signal 11") == true)
            #expect(failure?.isRetryable == false)
            try await until("all is heard") { fixture.notes.count == 4 }
            #expect(
                fixture.notes.sorted().prefix(2) == [
                    "crashed while rendering: signal 11", "crashed while rendering: signal 11",
                ])
            #expect(fixture.notes.sorted().suffix(2) == ["the last words", "the last words"])
            #expect(fixture.children.processes.isEmpty)
        }
    }

    @Test func `a crash that does not happen again does no harm`() async throws {
        let (source, folder) = (try await Pictures.noise(), TemporaryFolder("crash"))
        let script = #"mkdir "$0/was-here" 2>/dev/null && kill -SEGV $$; exec "$1" render-child"#
        try await RenderFixture.with(
            program: "/bin/sh", arguments: ["-c", script, folder.path, HalcyonExecutable.path]
        ) { fixture in
            let image = try await fixture.renderInChild(source, variant)
            #expect(image.size == PixelSize(width: 20, height: 20))
        }
        await folder.remove()
    }

    @Test func `a picture that two children are ended over is nobody's fault`() async throws {
        let source = try await Pictures.noise()
        for script in ["kill -KILL $$", "exit 3"] {
            try await RenderFixture.with(program: "/bin/sh", arguments: ["-c", script]) { fixture in
                let failure = await fixture.failure(source, variant)
                #expect(failure?.code == .internal && failure?.isRetryable == true, "\(failure as Any)")
            }
        }
    }

    @Test func `a child that answers nonsense is ended`() async throws {
        let source = try await Pictures.noise()
        // A header of 3 bytes that is no JSON; a header of 4 GiB.
        for answer in [#"\003\0\0\0\0\0\0\0xyz"#, #"\377\377\377\377\0\0\0\0"#] {
            let script = "printf '\(answer)' >&0; sleep 1000"
            try await RenderFixture.with(program: "/bin/sh", arguments: ["-c", script]) { fixture in
                let failure = await fixture.failure(source, variant)
                #expect(failure?.code == .internal && failure?.isRetryable == false, "\(failure as Any)")
                #expect(fixture.children.processes.isEmpty)
            }
        }
    }

    @Test func `without the program there is a clear failure`() async throws {
        let source = try await Pictures.noise()
        try await RenderFixture.with(program: "/no/such/program") { fixture in
            let failure = await fixture.failure(source, variant)
            #expect(failure?.code == .internal && failure?.message.contains("/no/such/program") == true)
        }
    }

    @Test func `the settings' secrets are not in a child's environment, and it dies with its parent`() async throws {
        let folder = TemporaryFolder("parent")
        folder.write(try await Pictures.noise(), to: "noise.jpg")
        var options = ChildProcess.Options()
        options.environment = ["HALCYON_REDIS_URL": "redis://:secret@localhost", "LANG": "C.UTF-8"]
        let parent = try await ChildProcess.start(
            HalcyonExecutable.path,
            [
                "render", "\(folder.path)/noise.jpg", "--width", "6000", "--height", "6000", "--format", "avif",
                "--effort", "9", "-o", "\(folder.path)/out.avif",
            ], options: options)
        try await until("the parent has a child") {
            Machine.children(of: parent.pid).contains { Machine.text("/proc/\($0)/cmdline").contains("render-child") }
        }
        let child = Machine.children(of: parent.pid)[0]
        let environment = Machine.text("/proc/\(child)/environ")
        #expect(environment.contains("LANG=C.UTF-8") && !environment.contains("secret"))
        parent.send(SIGKILL)
        await parent.exit()
        try await until("the child is gone") { kill(child, 0) != 0 }
        await folder.remove()
    }
}
