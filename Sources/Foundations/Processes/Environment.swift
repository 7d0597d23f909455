import Glibc

/// The environment variables of this process.
public func environmentVariables() -> [String: String] {
    var variables: [String: String] = [:]
    var next = environ
    while let text = next.pointee {
        let pair = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        if pair.count == 2 { variables[String(pair[0])] = String(pair[1]) }
        next += 1
    }
    return variables
}
