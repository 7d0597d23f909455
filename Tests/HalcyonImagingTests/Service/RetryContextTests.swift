import Glibc
import HalcyonImaging
import HalcyonModel
import TestSupport
import Testing

/// Pictures that a worker did not survive are tried in children of their own.
@Suite(.limitedParallelism) struct RetryContextTests {
    private let variant = filling(20, 20, as: .jpeg)

    @Test(arguments: ["kill -SEGV $$", "kill -KILL $$", "exit 3"])
    func `what so many children die of is poison, however they die`(script: String) async throws {
        let source = try await Pictures.noise()
        for children in [1, 2, 4] {
            try await RenderFixture.with(program: "/bin/sh", arguments: ["-c", script]) { fixture in
                let failure = await fixture.failure(source, variant, isolation: .trial(children: children))
                #expect(failure?.code == .poison && failure?.isRetryable == false, "\(failure as Any)")
                #expect(fixture.notes.count == children && fixture.children.processes.isEmpty)
            }
        }
    }

    @Test func `what children hang of is poison`() async throws {
        let source = try await Pictures.noise()
        try await RenderFixture.with(
            limits: ImageLimits(renderTime: .milliseconds(300)), program: "/bin/sh",
            arguments: ["-c", "exec sleep 1000"]
        ) { fixture in
            let failure = await fixture.failure(source, variant, isolation: .trial(children: 2))
            #expect(failure?.code == .poison, "\(failure as Any)")
            #expect(
                failure?.message.components("took longer") == 2 && fixture.children.processes.isEmpty,
                "\(failure as Any)")
        }
    }

    @Test func `one that lives acquits it`() async throws {
        let (source, folder) = (try await Pictures.noise(), TemporaryFolder("trial"))
        let script = #"mkdir "$0/was-here" 2>/dev/null && kill -SEGV $$; exec "$1" render-child"#
        try await RenderFixture.with(
            program: "/bin/sh", arguments: ["-c", script, folder.path, HalcyonExecutable.path]
        ) { fixture in
            let rendering = try await fixture.service.render(source, [variant], isolation: .trial(children: 2))
            #expect(rendering.images[0].size == PixelSize(width: 20, height: 20))
        }
        await folder.remove()
    }

    @Test func `a failure of its own is no death, and the child goes on`() async throws {
        try await RenderFixture.with { fixture in
            let failure = await fixture.failure([1, 2, 3], variant, isolation: .trial(children: 2))
            #expect(failure?.code == .unsupportedFormat, "\(failure as Any)")
            #expect(fixture.notes.isEmpty)
            // After a worker's death a great many are tried: one child after the other would cost more than the pictures.
            let first = try await fixture.child()
            _ = try await fixture.service.render(
                try await Pictures.noise(), [variant], isolation: .trial(children: 2))
            #expect(fixture.children.processes == [first])
        }
    }

    @Test func `children have limits`() async throws {
        let source = try await Pictures.noise()
        try await RenderFixture.with(
            limits: ImageLimits(renderTime: .seconds(100)), { $0.memory = 1 << 30 }
        ) { fixture in
            _ = try await fixture.renderInChild(source, variant)
            let limits = Machine.text("/proc/\(try await fixture.child())/limits").split(separator: "\n")
            func soft(_ name: String) -> Int? {
                limits.first { $0.hasPrefix(name) }?.dropFirst(26).split(separator: " ").first.flatMap { Int($0) }
            }
            #expect(soft("Max core file size") == 0)
            #expect(soft("Max file size") == 1 << 30)
            #expect(soft("Max open files") == 128)
            // Each processor the time of one rendering, and a little.
            let processors = sysconf(Int32(_SC_NPROCESSORS_ONLN))
            #expect((101 * processors...101 * processors + 60).contains(soft("Max cpu time") ?? 0))
        }
    }

    @Test func `a picture that takes all the processor time of two children takes too long`() async throws {
        let source = try await Pictures.noise()
        try await RenderFixture.with(program: "/bin/sh", arguments: ["-c", "kill -XCPU $$"]) { fixture in
            let failure = await fixture.failure(source, variant)
            #expect(failure?.code == .timeout && failure?.isRetryable == false, "\(failure as Any)")
        }
    }
}

extension String {
    fileprivate func components(_ part: String) -> Int {
        var (count, rest) = (0, self[...])
        while let range = rest.firstRange(of: part) {
            count += 1
            rest = rest[range.upperBound...]
        }
        return count
    }
}
