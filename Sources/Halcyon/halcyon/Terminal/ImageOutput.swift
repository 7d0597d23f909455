import Arguments
import Glibc
import Threads

/// Where a command puts an image.
enum ImageOutput {
    /// Into a file.
    case file(String)
    /// On standard output, where nothing else may be printed then.
    case standardOutput
    /// Nowhere: standard output is a terminal, or taken by what is printed of the image.
    case none

    static let option = Parameter<String?>.option(
        "output", short: "o", .file, as: "FILE",
        help: "Where to write the image; without it, to standard output unless that is a terminal.")

    /// - Parameter printsFacts: whether standard output is for what is known of the image.
    init(_ arguments: ParsedCommand, printsFacts: Bool) {
        switch arguments[Self.option] {
        case "-": self = .standardOutput
        case let path?: self = .file(path)
        case nil: self = printsFacts || Console.outputIsTerminal ? .none : .standardOutput
        }
    }

    /// The file's path, if it is one.
    var path: String? { if case .file(let path) = self { path } else { nil } }

    /// Whether standard output is free for what is known of the image.
    var leavesStandardOutput: Bool { if case .standardOutput = self { false } else { true } }

    /// Whether the image goes anywhere.
    var isNone: Bool { if case .none = self { true } else { false } }

    /// - Throws: ``FileError``.
    func write(_ bytes: [UInt8]) async throws(FileError) {
        switch self {
        case .none: break
        case .file(let path): try await Files.write(bytes, to: path)
        case .standardOutput:
            let code = await blocking { Console.write(bytes, to: STDOUT_FILENO) ? nil : errno }
            if let code { throw FileError("cannot write to standard output", code) }
        }
    }
}
