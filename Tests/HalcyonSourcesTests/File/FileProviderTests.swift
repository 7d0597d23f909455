import Concurrency
import Glibc
import HalcyonModel
import TestSupport
import Testing

@testable import HalcyonSources

/// Files under roots, and attempts to leave the roots.
@Suite struct FileProviderTests {
    /// Runs `body` with a root beside a secret in a temporary folder, and removes the folder.
    private static func with(_ body: (_ root: String, TemporaryFolder) async throws -> Void) async throws {
        let folder = TemporaryFolder("files")
        mkdir("\(folder.path)/root", 0o755)
        mkdir("\(folder.path)/root/sub", 0o755)
        mkdir("\(folder.path)/root-2", 0o755)
        for name in ["root/a.jpg", "root/sub/b c%.jpg"] { folder.write(Array(name.utf8), to: name) }
        for name in ["secret", "root-2/secret"] { folder.write(Array("secret".utf8), to: name) }
        let result: Result<Void, any Error>
        do { result = .success(try await body("\(folder.path)/root", folder)) } catch { result = .failure(error) }
        await folder.remove()
        try result.get()
    }

    @Test func readsFilesUnderRoots() async throws {
        try await Self.with { root, _ in
            try await withLoader({ $0.fileRoots = ["/nowhere", "\(root)/"] }) { loader in
                for (name, content) in [
                    ("a.jpg", "root/a.jpg"), ("./sub//b%20c%25.jpg", "root/sub/b c%.jpg"),
                    ("s%75b/b%20c%25.jpg", "root/sub/b c%.jpg"),
                ] {
                    #expect(try await loader.load(try Source("file://\(root)/\(name)")).body == Array(content.utf8))
                }
                let loaded = try await loader.load(try Source("file://\(root)/a.jpg"))
                #expect(loaded.status == nil && loaded.headers["Cache-Control"] == nil)
            }
        }
    }

    @Test(arguments: [
        ("/../secret", JobErrorCode.invalidJob), ("/sub/../../secret", .invalidJob), ("/%2e%2e/secret", .invalidJob),
        ("/..%2fsecret", .invalidJob), ("/%252e%252e/secret", .notFound), ("-2/secret", .forbidden),
        ("/a.jpg/b", .notFound),
        ("/none.jpg", .notFound), ("/sub", .forbidden), ("/./../root-2/secret", .invalidJob),
        ("/secret%00.jpg", .invalidJob),
    ])
    func rejectsEscapingAndInvalidPaths(path: String, code: JobErrorCode) async throws {
        try await Self.with { root, _ in
            try await withLoader({ $0.fileRoots = [root] }) { loader in
                let failure = try await loader.failure(of: "file://\(root)\(path)")
                #expect(failure?.code == code)
            }
        }
    }

    @Test func rejectsAllFilesWithoutRoots() async throws {
        try await Self.with { root, _ in
            try await withLoader { loader in
                let failure = try #require(try await loader.failure(of: "file://\(root)/a.jpg"))
                #expect(failure.code == .forbidden && failure.message.contains("sources.fileRoots"))
                #expect(!failure.isRetryable)
            }
        }
    }

    @Test(arguments: [true, false])
    func doesNotFollowSymlinksOutOfRoot(usesKernel: Bool) async throws {
        try await Self.with { root, folder in
            symlink("../secret", "\(root)/file")
            symlink("\(folder.path)/secret", "\(root)/absolute")
            symlink("..", "\(root)/up")
            symlink("/", "\(root)/all")
            symlink("loop", "\(root)/loop")
            symlink("/proc/self/cwd", "\(root)/magic")
            symlink("sub", "\(root)/inside")
            symlink("a.jpg", "\(root)/inside.jpg")
            var files = FileRoot(root)
            files.usesKernel = usesKernel
            for path in [
                "file", "absolute", "up/secret", "all/etc/passwd", "loop", "magic/secret", "sub/../../secret",
                "up/root-2/secret",
                "inside/../../secret",
            ] {
                let error = #expect(throws: SystemError.self) { try files.open(path) }
                #expect([EXDEV, ELOOP, ENOENT].contains(error?.code), "\(path): \(String(describing: error))")
            }
            // Symlinks that stay inside are followed only if the kernel enforces that they do.
            for path in ["inside/b c%.jpg", "inside.jpg"] {
                let descriptor = try? files.open(path)
                #expect((descriptor != nil) == usesKernel)
                if let descriptor { close(descriptor) }
            }
            for path in ["a.jpg", "sub/b c%.jpg"] { close(try files.open(path)) }
        }
    }

    @Test func errorExplainsSymlinkThatLeavesRoot() async throws {
        try await Self.with { root, _ in
            symlink("../secret", "\(root)/file")
            try await withLoader({ $0.fileRoots = [root] }) { loader in
                let failure = try #require(try await loader.failure(of: "file://\(root)/file"))
                #expect(failure.code == .forbidden && failure.message.contains("leads out"))
            }
        }
    }

    /// A folder on the path is repeatedly swapped for a symlink to a secret and back while the file is read.
    @Test(arguments: [true, false])
    func resistsSymlinkRaces(usesKernel: Bool) async throws {
        try await Self.with { root, folder in
            folder.write(Array("inside".utf8), to: "root/sub/f")
            mkdir("\(folder.path)/out", 0o755)
            folder.write(Array("secret".utf8), to: "out/f")
            symlink("\(folder.path)/out", "\(root)/link")
            let isOver = Lock(false)
            let swapping = NamedThread(name: "swap") {
                while !isOver.withLock({ $0 }) {
                    rename("\(root)/sub", "\(root)/kept")
                    rename("\(root)/link", "\(root)/sub")
                    rename("\(root)/sub", "\(root)/link")
                    rename("\(root)/kept", "\(root)/sub")
                }
            }
            let read = await blocking { () -> (good: Int, refused: Int, bad: Int) in
                var files = FileRoot(root)
                files.usesKernel = usesKernel
                var counts = (good: 0, refused: 0, bad: 0)
                var attempts = 0
                // A busy machine may stop the swapping thread while many files are read.
                let deadline = ContinuousClock.now + .patience
                while attempts < 200_000
                    || ((counts.good == 0 || counts.refused == 0) && ContinuousClock.now < deadline)
                {
                    attempts += 1
                    guard let file = try? OpenFile("sub/f", in: files), let bytes = try? file.bytes(upTo: 100) else {
                        counts.refused += 1
                        continue
                    }
                    if bytes == Array("inside".utf8) { counts.good += 1 } else { counts.bad += 1 }
                    if counts.good >= 200 && counts.refused >= 200 { break }
                }
                return counts
            }
            isOver.withLock { $0 = true }
            await blocking { swapping.join() }
            #expect(read.bad == 0)
            // Both outcomes must occur, or the test shows nothing.
            #expect(read.good > 0 && read.refused > 0, "\(read)")
        }
    }

    @Test func readsOnlyRegularFiles() async throws {
        try await Self.with { root, _ in
            mkfifo("\(root)/pipe", 0o600)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(listener) }
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: "\(root)/socket".utf8) }
            withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    _ = bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            try await withLoader({ $0.fileRoots = [root, "/dev"] }) { loader in
                // Opening a pipe without a writer would block forever.
                for path in ["\(root)/pipe", "\(root)/socket", "\(root)/sub", "/dev/null", "/dev/zero"] {
                    let failure = try #require(try await loader.failure(of: "file://\(path)"), "\(path)")
                    #expect(failure.code == .forbidden && failure.message.contains("not a regular file"), "\(failure)")
                }
            }
        }
    }

    @Test func acceptsFilesUpToTheSizeLimit() async throws {
        try await Self.with { root, folder in
            folder.write([UInt8](repeating: 7, count: 1000), to: "root/exact")
            folder.write([UInt8](repeating: 7, count: 1001), to: "root/over")
            try await withLoader({
                $0.fileRoots = [root]
                $0.maximumBytes = 1000
            }) { loader in
                #expect(try await loader.load(try Source("file://\(root)/exact")).body.count == 1000)
                let failure = try #require(try await loader.failure(of: "file://\(root)/over"))
                #expect(failure.code == .tooLarge && failure.message.contains("sources.maximumBytes"))
            }
            // A file that grows after it was opened.
            let file = try OpenFile("exact", in: FileRoot(root))
            folder.write([UInt8](repeating: 7, count: 1001), to: "root/exact")
            #expect(try file.bytes(upTo: 1000) == nil)
        }
    }

    @Test func revalidationDetectsChangedFiles() async throws {
        try await Self.with { root, folder in
            let source = try Source("file://\(root)/a.jpg")
            try await withLoader({ $0.fileRoots = [root] }) { loader in
                let known = try await loader.load(source).validators
                #expect(known.etag?.hasPrefix("\"") == true)
                guard case .notModified = try await loader.load(source, ifNoneMatch: known) else {
                    Issue.record("the unchanged file was read again")
                    return
                }
                folder.write(Array("another".utf8), to: "root/a.jpg")
                guard case .loaded(let loaded) = try await loader.load(source, ifNoneMatch: known) else {
                    Issue.record("the change was not detected")
                    return
                }
                #expect(loaded.body == Array("another".utf8) && loaded.validators != known)
            }
        }
    }
}
