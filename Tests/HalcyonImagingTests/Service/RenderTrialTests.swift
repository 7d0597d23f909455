import Glibc
import HalcyonImaging
import HalcyonModel
import TestSupport
import Testing

/// Images that have crashed a worker are tried in child processes.
@Suite(.limitedParallelism) struct RenderTrialTests {
    private let variant = filling(20, 20, as: .jpeg)

    @Test(arguments: ["kill -SEGV $$", "kill -KILL $$", "exit 3"])
    func imageThatCrashesAllChildrenIsPoison(script: String) async throws {
        let source = try await TestImages.noise()
        for children in [1, 2, 4] {
            try await RenderFixture.with(program: "/bin/sh", arguments: ["-c", script]) { fixture in
                let failure = await fixture.failure(source, variant, isolation: .trial(children: children))
                #expect(failure?.code == .poison && failure?.isRetryable == false, "\(failure as Any)")
                #expect(fixture.loggedEvents.count == children && fixture.children.processes.isEmpty)
            }
        }
    }

    @Test func imageThatHangsAllChildrenIsPoison() async throws {
        let source = try await TestImages.noise()
        try await RenderFixture.with(
            limits: ImageLimits(renderTime: .milliseconds(300)), program: "/bin/sh",
            arguments: ["-c", "exec sleep 1000"]
        ) { fixture in
            let failure = await fixture.failure(source, variant, isolation: .trial(children: 2))
            #expect(failure?.code == .poison, "\(failure as Any)")
            #expect(
                failure?.message.occurrences(of: "took longer") == 2 && fixture.children.processes.isEmpty,
                "\(failure as Any)")
        }
    }

    @Test func rendersIfOneChildSurvives() async throws {
        let (source, folder) = (try await TestImages.noise(), TemporaryFolder("trial"))
        let script = #"mkdir "$0/was-here" 2>/dev/null && kill -SEGV $$; exec "$1" render-child"#
        try await RenderFixture.with(
            program: "/bin/sh", arguments: ["-c", script, folder.path, HalcyonExecutable.path]
        ) { fixture in
            let rendering = try await fixture.service.render(source, [variant], isolation: .trial(children: 2))
            #expect(rendering.images[0].size == PixelSize(width: 20, height: 20))
        }
        await folder.remove()
    }

    @Test func failureIsNotACrashAndKeepsTheChild() async throws {
        try await RenderFixture.with { fixture in
            let failure = await fixture.failure([1, 2, 3], variant, isolation: .trial(children: 2))
            #expect(failure?.code == .unsupportedFormat, "\(failure as Any)")
            #expect(fixture.loggedEvents.isEmpty)
            // After a worker crash many images are tried. A new child for each would cost more than the rendering.
            let first = try await fixture.child()
            _ = try await fixture.service.render(
                try await TestImages.noise(), [variant], isolation: .trial(children: 2))
            #expect(fixture.children.processes == [first])
        }
    }

    @Test func childrenHaveResourceLimits() async throws {
        let source = try await TestImages.noise()
        try await RenderFixture.with(
            limits: ImageLimits(renderTime: .seconds(100)), { $0.memory = 1 << 30 }
        ) { fixture in
            _ = try await fixture.renderInChild(source, variant)
            let limits = ProcFS.text("/proc/\(try await fixture.child())/limits").split(separator: "\n")
            func soft(_ name: String) -> Int? {
                limits.first { $0.hasPrefix(name) }?.dropFirst(26).split(separator: " ").first.flatMap { Int($0) }
            }
            #expect(soft("Max core file size") == 0)
            #expect(soft("Max file size") == 1 << 30)
            #expect(soft("Max open files") == 128)
            // The time of one rendering for each processor, and a margin.
            let processors = sysconf(Int32(_SC_NPROCESSORS_ONLN))
            #expect((101 * processors...101 * processors + 60).contains(soft("Max cpu time") ?? 0))
        }
    }

    @Test func exceedingTheCPUTimeOfTwoChildrenIsATimeout() async throws {
        let source = try await TestImages.noise()
        try await RenderFixture.with(program: "/bin/sh", arguments: ["-c", "kill -XCPU $$"]) { fixture in
            let failure = await fixture.failure(source, variant)
            #expect(failure?.code == .timeout && failure?.isRetryable == false, "\(failure as Any)")
        }
    }
}

extension String {
    fileprivate func occurrences(of part: String) -> Int {
        var (count, rest) = (0, self[...])
        while let range = rest.firstRange(of: part) {
            count += 1
            rest = rest[range.upperBound...]
        }
        return count
    }
}
