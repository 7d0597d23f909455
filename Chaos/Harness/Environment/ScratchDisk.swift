import Glibc
import Subprocess
import TestSupport

/// A tmpfs that can be full. Mounting it requires root.
struct ScratchDisk: Sendable {
    /// The mount point.
    let path: String
    private let folder: TemporaryFolder
    private let size: String

    /// Mounts a file system of the given size; nil if that is not permitted.
    static func mount(mebibytes: Int) async -> ScratchDisk? {
        let folder = TemporaryFolder("disk")
        let mounted = try? await ChildProcess.start(
            "mount", ["-t", "tmpfs", "-o", "size=\(mebibytes)m", "tmpfs", folder.path]
        ).exit()
        guard mounted == .code(0) else {
            await folder.remove()
            return nil
        }
        return ScratchDisk(path: folder.path, folder: folder, size: "\(mebibytes)m")
    }

    /// Leaves no space, by reducing the size to what is used.
    /// - Throws: ``ScratchDiskError``.
    func fill() async throws {
        // Files may be written between the two calls. The size cannot be less than what they use.
        for _ in 0..<20 {
            var status = statvfs()
            guard statvfs(path, &status) == 0 else { break }
            let used = (status.f_blocks - status.f_bfree) * status.f_frsize / 1024
            if try await resize(to: "\(max(used, 1))k") { return }
        }
        throw ScratchDiskError(description: "cannot reduce the size of \(path)")
    }

    /// Restores the size.
    /// - Throws: ``ScratchDiskError``.
    func clear() async throws {
        guard try await resize(to: size) else {
            throw ScratchDiskError(description: "cannot restore the size of \(path)")
        }
    }

    private func resize(to size: String) async throws -> Bool {
        var options = ChildProcess.Options()
        options.errors = .discarded
        let exit = try await ChildProcess.start("mount", ["-o", "remount,size=\(size)", path], options: options).exit()
        return exit == .code(0)
    }

    /// Unmounts the file system.
    func remove() async {
        _ = try? await ChildProcess.start("umount", ["-l", path]).exit()
        await folder.remove()
    }
}

/// A scratch disk cannot be resized.
struct ScratchDiskError: Error, CustomStringConvertible {
    let description: String
}
