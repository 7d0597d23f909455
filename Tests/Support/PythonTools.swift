import Foundation
import Subprocess

/// What the tests need of PyPI.
public enum PythonTools {
    /// A Python that has it. The first time it is fetched.
    public static func interpreter() async throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized.path
        let exit = try await ChildProcess.start("\(root)/scripts/python-tools").exit()
        guard exit == .code(0) else {
            throw NotInTime(description: "scripts/python-tools ended with \(exit); run it to see why")
        }
        return "\(root)/.build/python/bin/python"
    }
}
