import Concurrency
import Glibc
import HalcyonModel
import ProgramSettings

/// The destination of a command's images.
enum ImageOutput {
    /// A file.
    case file(String)
    /// A folder. File names contain the source and the size.
    case folder(String)
    /// Standard output. Nothing else may be printed there.
    case standardOutput
    /// No destination, because standard output is a terminal or used for information about the images.
    case none

    static let option = Parameter<String?>.option(
        "output", short: "o", .file, as: "FILE-or-DIR/",
        help:
            "Write the image to a file, or to a folder under a name made of its source and size. A job with "
            + "variants needs a folder. Default: standard output, unless it is a terminal.")

    /// - Parameters:
    ///   - printsFacts: true if standard output is used for information about the images.
    ///   - count: the number of images.
    /// - Throws: ``InputError`` if several images would go to one file or to standard output.
    init(_ arguments: ParsedCommand, printsFacts: Bool, count: Int) throws(InputError) {
        switch arguments[Self.option] {
        case "-": self = .standardOutput
        case let path? where path.hasSuffix("/") || Self.isFolder(path): self = .folder(path)
        case let path?: self = .file(path)
        case nil: self = printsFacts || Console.outputIsTerminal ? .none : .standardOutput
        }
        guard count > 1 else { return }
        switch self {
        case .file(let path):
            throw InputError(
                "cannot write \(count) images to the file \(path); use -o DIR/ to write to a folder", of: arguments)
        case .standardOutput:
            throw InputError(
                "cannot write \(count) images to standard output; use -o DIR/ to write to a folder", of: arguments)
        case .folder, .none: break
        }
    }

    /// Returns the format for the extension of the file, or nil if there is no file or no extension.
    /// - Throws: ``InputError`` for an extension that is not a writable format.
    func format(_ arguments: ParsedCommand) throws(InputError) -> ImageFormat? {
        guard case .file(let path) = self, let name = path.split(separator: "/").last,
            let dot = name.lastIndex(of: "."), dot > name.startIndex
        else { return nil }
        let ending = name[dot...].dropFirst().lowercased()
        if ending == "tif" { return .tiff }
        if let format = ImageFormat.writable.first(where: { [$0.rawValue, $0.fileExtension].contains(ending) }) {
            return format
        }
        let known = ImageFormat.writable.map { ".\($0.fileExtension)" }.joined(separator: ", ")
        throw InputError(
            "\(path): unknown file extension; expected \(known), or choose the format with --format",
            of: arguments)
    }

    /// True if standard output is free for information about the images.
    var leavesStandardOutput: Bool { if case .standardOutput = self { false } else { true } }

    /// True if no image is written.
    var isNone: Bool { if case .none = self { true } else { false } }

    /// Writes the images of one source.
    /// - Returns: the path of each image, or nil for an image that is not written to a file.
    /// - Throws: ``FileError``.
    func write(_ images: [FileNames.Image], of source: String) async throws(FileError) -> [String?] {
        switch self {
        case .none: break
        case .file(let path):
            for image in images { try await Files.write(image.bytes, to: path) }
            return images.map { _ in path }
        case .folder(let folder):
            try await Files.makeFolder(folder)
            let names = FileNames.names(of: images, stem: FileNames.stems(of: [source])[0])
            let paths = names.map { folder.hasSuffix("/") ? folder + $0 : "\(folder)/\($0)" }
            for (image, path) in zip(images, paths) { try await Files.write(image.bytes, to: path) }
            return paths
        case .standardOutput:
            for image in images {
                let code = await blocking { Console.write(image.bytes, to: STDOUT_FILENO) ? nil : errno }
                if let code { throw FileError("cannot write to standard output", code) }
            }
        }
        return images.map { _ in nil }
    }

    private static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
}
