import Foundation
import Subprocess

/// The PyPI packages that the tests need.
public enum PythonTools {
    /// Returns the path of a Python interpreter with the packages. The first call downloads them.
    public static func interpreter() async throws -> String { try await installation.value }

    private static let installation = Task {
        let exit = try await ChildProcess.start(Repository.path("scripts/python-tools")).exit()
        guard exit == .code(0) else {
            throw ConditionTimeout(description: "scripts/python-tools failed with \(exit); run it to see the error")
        }
        return Repository.path(".build/python/bin/python")
    }
}
