import Glibc
import HalcyonModel
import ProgramSettings
import Threads

/// Where a command puts images.
enum ImageOutput {
    /// Into a file.
    case file(String)
    /// Into a folder, each under a name that tells its source and its size.
    case folder(String)
    /// On standard output, where nothing else may be printed then.
    case standardOutput
    /// Nowhere: standard output is a terminal, or taken by what is printed of the images.
    case none

    static let option = Parameter<String?>.option(
        "output", short: "o", .file, as: "FILE-or-DIR/",
        help:
            "Where to write the image: a file, or a folder, in which it is named after its source and size; a job of "
            + "several variants needs a folder. Without it, to standard output unless that is a terminal.")

    /// - Parameters:
    ///   - printsFacts: whether standard output is for what is known of the images.
    ///   - count: how many images there are to be.
    /// - Throws: ``InputError`` when several would have to share one place.
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
                "\(path) is one file, and there are \(count) images: -o DIR/ names a folder", of: arguments)
        case .standardOutput:
            throw InputError(
                "\(count) images are too many for standard output: -o DIR/ names a folder for them", of: arguments)
        case .folder, .none: break
        }
    }

    /// The format that the file's name ends in; nil for a name without an ending, and where there is no file.
    /// - Throws: ``InputError`` for the ending of no format that is written.
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
            "\(path): images are written as \(known); --format says which one, whatever the file is called",
            of: arguments)
    }

    /// Whether standard output is free for what is known of the images.
    var leavesStandardOutput: Bool { if case .standardOutput = self { false } else { true } }

    /// Whether images go anywhere.
    var isNone: Bool { if case .none = self { true } else { false } }

    /// Writes images that were made of one source.
    /// - Returns: the path of each; nil where it is no file.
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
