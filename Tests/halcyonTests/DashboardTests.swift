import Foundation
import Glibc
import Subprocess
import TestSupport
import Testing

/// The dashboard in a real browser, checked by `Tests/Browser/dashboard.py`.
@Suite(
    .devCluster, .limitedParallelism, .extended,
    .enabled(if: access("/usr/bin/chromium", X_OK) == 0, "there is no /usr/bin/chromium; make deps-test installs it"))
struct DashboardTests {
    private static let script = Repository.path("Tests/Browser/dashboard.py")

    @Test func passesAllChecksInChromium() async throws {
        let cluster = DevClusterFixture.current!
        let folder = TemporaryFolder("dashboard")
        var options = ChildProcess.Options()
        options.environment = cluster.environment.merging([
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": folder.path, "TMPDIR": folder.path,
            "HALCYON_EXECUTABLE": HalcyonExecutable.path,
        ]) { $1 }
        let lines = #"exec "$0" "$1" "$2" "$3" >"$4" 2>&1"#
        let exit = try await ChildProcess.start(
            "/bin/sh",
            [
                "-c", lines, try await PythonTools.interpreter(), Self.script, cluster.gateway, cluster.origin.url,
                "\(folder.path)/output",
            ], options: options
        ).exit()
        let output = Executable.text(folder.read("output"))
        #expect(exit == .code(0), "\(output)")
        #expect(output.split(separator: "\n").count { $0.hasPrefix("ok  ") } == 37, "\(output)")
        await folder.remove()
    }
}
