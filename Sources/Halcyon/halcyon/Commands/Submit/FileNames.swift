/// Names of files for images, made of their sources' URLs.
enum FileNames {
    /// A stem for each source, no two alike: `cat` for `https://example.org/cat.jpg?v=2`, and `cat-2` for the next of
    /// that name.
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
        let path = rest.prefix { !"?#".contains($0) }.split(separator: "/").dropFirst()
        let name = path.last ?? "image"
        let stem = name.lastIndex(of: ".").map { name[..<$0] } ?? name
        let clean = stem.utf8.prefix(80).map { byte in
            Unicode.Scalar(byte).properties.isAlphabetic && byte < 0x80 || "0123456789-_.".utf8.contains(byte)
                ? Character(Unicode.Scalar(byte)) : "_"
        }
        let visible = clean.drop { $0 == "." }
        return visible.isEmpty ? "image" : String(visible)
    }
}
