import Glibc
import Processes
import TestSupport

/// A small file system of its own, in memory, for what fills a disk. Only root can make one.
struct ScratchDisk: Sendable {
    /// Where it is mounted.
    let path: String
    private let folder: TemporaryFolder

    /// Mounts one of so many MiB; nil where that is not allowed.
    static func mount(mebibytes: Int) async -> ScratchDisk? {
        let folder = TemporaryFolder("disk")
        let mounted = try? await ChildProcess.start(
            "mount", ["-t", "tmpfs", "-o", "size=\(mebibytes)m", "tmpfs", folder.path]
        ).exit()
        guard mounted == .code(0) else {
            await folder.remove()
            return nil
        }
        return ScratchDisk(path: folder.path, folder: folder)
    }

    /// Takes all room that is left.
    func fill() {
        guard let file = fopen("\(path)/filling", "w") else { return }
        let block = [UInt8](repeating: 1, count: 1 << 16)
        while fwrite(block, 1, block.count, file) == block.count && fflush(file) == 0 {}
        fclose(file)
    }

    /// Gives it back.
    func clear() { unlink("\(path)/filling") }

    /// Unmounts it.
    func remove() async {
        _ = try? await ChildProcess.start("umount", ["-l", path]).exit()
        await folder.remove()
    }
}
