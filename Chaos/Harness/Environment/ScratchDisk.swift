import Glibc
import Subprocess
import TestSupport

/// A small tmpfs for disk-full faults. Mounting it requires root.
struct ScratchDisk: Sendable {
    /// The mount point.
    let path: String
    private let folder: TemporaryFolder

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
        return ScratchDisk(path: folder.path, folder: folder)
    }

    /// Fills the remaining space.
    func fill() {
        guard let file = fopen("\(path)/filling", "w") else { return }
        let block = [UInt8](repeating: 1, count: 1 << 16)
        while fwrite(block, 1, block.count, file) == block.count && fflush(file) == 0 {}
        fclose(file)
    }

    /// Frees the space.
    func clear() { unlink("\(path)/filling") }

    /// Unmounts the file system.
    func remove() async {
        _ = try? await ChildProcess.start("umount", ["-l", path]).exit()
        await folder.remove()
    }
}
