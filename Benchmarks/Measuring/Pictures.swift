import Glibc

/// The contents of all files of a folder that begin like a JPEG, in the order of their names.
public func jpegs(in folder: String) throws -> [[UInt8]] {
    try jpegPaths(in: folder).compactMap { contents(of: $0) }
}

/// The paths of these files.
public func jpegPaths(in folder: String) throws -> [String] {
    guard let directory = opendir(folder) else { throw NoPictures(folder: folder) }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        names.append(
            withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
    }
    let files = names.sorted().map { "\(folder)/\($0)" }.filter {
        contents(of: $0)?.starts(with: [0xff, 0xd8]) == true
    }
    guard !files.isEmpty else { throw NoPictures(folder: folder) }
    return files
}

/// A folder without a JPEG.
public struct NoPictures: Error {
    /// The folder.
    public let folder: String
}

private func contents(of path: String) -> [UInt8]? {
    guard let file = fopen(path, "rb") else { return nil }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = fread(&chunk, 1, chunk.count, file), count > 0 { bytes += chunk[..<count] }
    return bytes
}
