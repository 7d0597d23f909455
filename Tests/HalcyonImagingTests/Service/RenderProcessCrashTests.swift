import Glibc
import HalcyonImaging
import HalcyonModel
import Subprocess
import TestSupport
import Testing

/// Child processes that crash, are killed or send garbage during a rendering.
@Suite(.limitedParallelism) struct RenderProcessCrashTests {
    private let variant = filling(20, 20, as: .jpeg)

    @Test func retriesInANewChildAfterAKill() async throws {
        let (source, folder) = (try await TestImages.noise(), TemporaryFolder("killed"))
        // The first child accepts the request and never finishes.
        let script = #"mkdir "$0/was-here" 2>/dev/null && exec sleep 1000; exec "$1" render-child"#
        try await RenderFixture.with(
            program: "/bin/sh", arguments: ["-c", script, folder.path, HalcyonExecutable.path]
        ) { fixture in
            let task = Task { try await fixture.renderInChild(source, variant) }
            let first = try await fixture.child()
            try await until("the first child sleeps") { ProcFS.text("/proc/\(first)/cmdline").hasPrefix("sleep") }
            kill(first, SIGKILL)
            let image = try await task.value
            #expect(image.size == PixelSize(width: 20, height: 20))
            let second = try await fixture.child()
            #expect(second != first)
            #expect(fixture.loggedEvents == ["crashed while rendering: signal 9"])
        }
        await folder.remove()
    }

    @Test func imageThatCrashesTwoChildrenIsCorrupt() async throws {
        let source = try await TestImages.noise()
        let script = "echo the last words >&2; kill -SEGV $$"
        try await RenderFixture.with(program: "/bin/sh", arguments: ["-c", script]) { fixture in
            let failure = await fixture.failure(source, variant)
            #expect(failure?.code == .corruptImage && failure?.message.contains("signal 11") == true)
            #expect(failure?.isRetryable == false)
            try await until("all events are logged") { fixture.loggedEvents.count == 4 }
            #expect(
                fixture.loggedEvents.sorted().prefix(2) == [
                    "crashed while rendering: signal 11", "crashed while rendering: signal 11",
                ])
            #expect(fixture.loggedEvents.sorted().suffix(2) == ["the last words", "the last words"])
            #expect(fixture.children.processes.isEmpty)
        }
    }

    @Test func rendersAfterASingleCrash() async throws {
        let (source, folder) = (try await TestImages.noise(), TemporaryFolder("crash"))
        let script = #"mkdir "$0/was-here" 2>/dev/null && kill -SEGV $$; exec "$1" render-child"#
        try await RenderFixture.with(
            program: "/bin/sh", arguments: ["-c", script, folder.path, HalcyonExecutable.path]
        ) { fixture in
            let image = try await fixture.renderInChild(source, variant)
            #expect(image.size == PixelSize(width: 20, height: 20))
        }
        await folder.remove()
    }

    @Test func failureIsRetryableIfTwoChildrenAreEnded() async throws {
        let source = try await TestImages.noise()
        for script in ["kill -KILL $$", "exit 3"] {
            try await RenderFixture.with(program: "/bin/sh", arguments: ["-c", script]) { fixture in
                let failure = await fixture.failure(source, variant)
                #expect(failure?.code == .internal && failure?.isRetryable == true, "\(failure as Any)")
            }
        }
    }

    @Test func endsAChildThatSendsGarbage() async throws {
        let source = try await TestImages.noise()
        // A header of 3 bytes that is not JSON, and a header of 4 GiB.
        for answer in [#"\003\0\0\0\0\0\0\0xyz"#, #"\377\377\377\377\0\0\0\0"#] {
            let script = "printf '\(answer)' >&0; sleep 1000"
            try await RenderFixture.with(program: "/bin/sh", arguments: ["-c", script]) { fixture in
                let failure = await fixture.failure(source, variant)
                #expect(failure?.code == .internal && failure?.isRetryable == false, "\(failure as Any)")
                #expect(fixture.children.processes.isEmpty)
            }
        }
    }

    @Test func failureNamesAMissingProgram() async throws {
        let source = try await TestImages.noise()
        try await RenderFixture.with(program: "/no/such/program") { fixture in
            let failure = await fixture.failure(source, variant)
            #expect(failure?.code == .internal && failure?.message.contains("/no/such/program") == true)
        }
    }

    @Test func childHasNoSecretsAndDiesWithItsParent() async throws {
        let folder = TemporaryFolder("parent")
        folder.write(try await TestImages.noise(), to: "noise.jpg")
        var options = ChildProcess.Options()
        options.environment = ["HALCYON_REDIS_URL": "redis://:secret@localhost", "LANG": "C.UTF-8"]
        let parent = try await ChildProcess.start(
            HalcyonExecutable.path,
            [
                "render", "\(folder.path)/noise.jpg", "--width", "6000", "--height", "6000", "--format", "avif",
                "--effort", "9", "-o", "\(folder.path)/out.avif",
            ], options: options)
        try await until("the parent has a child") {
            ProcFS.children(of: parent.pid).contains { ProcFS.text("/proc/\($0)/cmdline").contains("render-child") }
        }
        let child = ProcFS.children(of: parent.pid)[0]
        let environment = ProcFS.text("/proc/\(child)/environ")
        #expect(environment.contains("LANG=C.UTF-8") && !environment.contains("secret"))
        parent.send(SIGKILL)
        await parent.exit()
        try await until("the child is gone") { kill(child, 0) != 0 }
        await folder.remove()
    }
}
