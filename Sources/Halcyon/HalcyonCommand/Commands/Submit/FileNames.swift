import HalcyonModel

/// Names of files for images, made of their sources and their sizes.
enum FileNames {
    /// A file that gets a name.
    struct Image: Sendable {
        let bytes: [UInt8]
        let width: Int
        let height: Int
        /// nil for one that this version does not know.
        let format: ImageFormat?
    }

    /// A name for each image of one source, no two alike: `cat-400x300.jpg`, and `cat-400x300-2.jpg` for the next of that
    /// size and format.
    static func names(of images: [Image], stem: String) -> [String] {
        var counts: [String: Int] = [:]
        return images.map { image in
            let (size, ending) = (
                "\(stem)-\(image.width)x\(image.height)", image.format.map { ".\($0.fileExtension)" } ?? ""
            )
            counts[size + ending, default: 0] += 1
            let count = counts[size + ending] ?? 1
            return count == 1 ? size + ending : "\(size)-\(count)\(ending)"
        }
    }

    /// A stem for each source, no two alike: `cat` for `https://example.org/cat.jpg?v=2` and the file `pets/cat.jpg`, and
    /// `cat-2` for the next of that name; `initials_JD` for `initials:JD`.
    static func stems(of sources: [String]) -> [String] {
        var taken: Set<String> = []
        var numbers: [String: Int] = [:]
        return sources.map { source in
            let stem = stem(of: source)
            var candidate = stem
            while !taken.insert(candidate).inserted {
                numbers[stem, default: 1] += 1
                candidate = "\(stem)-\(numbers[stem] ?? 0)"
            }
            return candidate
        }
    }

    /// The last part of the path without its ending, in letters, digits, dots, dashes and underscores.
    private static func stem(of source: String) -> String {
        let scheme = source.firstRange(of: "://")
        let rest = scheme.map { source[$0.upperBound...] } ?? source[...]
        let path = rest.prefix { scheme == nil || !"?#".contains($0) }.split(separator: "/")
        // Of a URL the first part is the host.
        let name = path.dropFirst(scheme == nil ? 0 : 1).last ?? "image"
        let stem = name.lastIndex(of: ".").map { name[..<$0] } ?? name
        let clean = stem.utf8.prefix(80).map { byte in
            Unicode.Scalar(byte).properties.isAlphabetic && byte < 0x80 || "0123456789-_.".utf8.contains(byte)
                ? Character(Unicode.Scalar(byte)) : "_"
        }
        let visible = clean.drop { $0 == "." }
        return visible.isEmpty ? "image" : String(visible)
    }
}
