import Glibc
import HalcyonModel
import HalcyonWire
import JSON
import Threads

/// What is to be loaded, as a command line says it.
enum SourceArgument {
    /// For commands that take what workers load.
    static let help =
        "The URL of an image (https:, s3:, data:, file: on the worker's machine), initials:JD for an avatar, or JSON "
        + #"such as {"video": URL, "seconds": 1.5}"#

    /// What `render` is to read here itself.
    /// - Returns: the path, `-` for standard input, and the source that it is; nil for what is loaded as workers do it.
    /// - Throws: ``InputError`` for a file that cannot be named by a URL.
    static func localFile(_ text: String) async throws(InputError) -> (path: String, source: String)? {
        if text == "-" { return (text, standardInput) }
        if text.hasPrefix("{") { return nil }
        do throws(Failure) {
            let path = await blocking { canonicalPath(text) }
            if let scheme = Source.scheme(of: text), path == nil {
                return scheme == FileSource.scheme ? (try FileSource(text).path, text) : nil
            }
            // One that is not there is missed when it is read.
            return (text, try FileSource(path: path ?? "/\(text)").text)
        } catch {
            throw InputError("\(text): \(error.message)")
        }
    }

    /// Stands for what has no name.
    private static let standardInput = "data:,-"

    /// From the root on, without symbolic links; nil when nothing is there.
    private static func canonicalPath(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }
}

extension JobDraft {
    /// Sets the source to a text, or to the object that a text is.
    /// - Throws: ``InputError`` for what begins like an object and is no JSON.
    mutating func set(source text: String) throws(InputError) {
        guard text.hasPrefix("{") else { return set("source", text) }
        guard let object = GivenJSON(text) else { throw InputError("SOURCE begins with { and is no JSON: \(text)") }
        set("source", object)
    }
}
