import Glibc
import HalcyonModel
import Threads

/// Reads files under the folders that the operator named, and no others.
struct FileProvider: SourceProvider {
    private let roots: [FileRoot]
    var maximumBytes: Int

    /// - Parameter roots: absolute paths of folders.
    init(roots: [String], maximumBytes: Int) {
        self.roots = roots.map { FileRoot($0) }
        self.maximumBytes = maximumBytes
    }

    /// - Throws: ``Failure`` `forbidden` for what lies under no root, leads out of it, or is no regular file; `not_found`;
    ///   `too_large`; `provider_error`.
    func fetch(_ file: FileSource, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        guard let (root, path) = roots.lazy.compactMap({ root in root.path(of: file.path).map { (root, $0) } }).first
        else {
            throw Failure(
                .forbidden, "\(file.path) lies under none of the folders in sources.fileRoots",
                isRetryable: false)
        }
        let limit = maximumBytes
        return try await blocking { () throws(Failure) -> FetchResponse in
            let opened: OpenFile
            do throws(SystemError) {
                opened = try OpenFile(path, in: root)
            } catch {
                throw Failure(error, opening: file.path)
            }
            let validators = Validators(etag: opened.etag)
            if known == validators { return .notModified(.init()) }
            guard opened.size <= limit else { throw Failure(tooLargeFor: limit) }
            let bytes: [UInt8]?
            do throws(SystemError) {
                bytes = try opened.bytes(upTo: limit)
            } catch {
                throw Failure(.providerError, "\(file.path): \(error)", cause: error)
            }
            guard let bytes else { throw Failure(tooLargeFor: limit) }
            return .loaded(LoadedSource(body: bytes, validators: validators))
        }
    }
}

extension Failure {
    fileprivate init(_ error: SystemError, opening path: String) {
        switch error.code {
        case ENOENT, ENOTDIR, ENAMETOOLONG: self.init(.notFound, "there is no file \(path)")
        case EACCES, EPERM: self.init(.forbidden, "\(path): \(error)")
        case EXDEV, ELOOP: self.init(.forbidden, "\(path) leads out of its folder in sources.fileRoots")
        case EISDIR, ENXIO, ENODEV: self.init(.forbidden, "\(path) is no regular file")
        default: self.init(.providerError, "\(path): \(error)")
        }
        cause = error
    }
}
