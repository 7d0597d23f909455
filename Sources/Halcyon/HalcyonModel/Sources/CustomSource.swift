/// What a provider of the host program's own loads, by the name it was registered under.
public struct CustomSource: Hashable, Codable, Sendable {
    /// Bytes of the longest reference taken.
    public static let longest = 16 << 10

    /// The name.
    public let name: String
    /// What the job says of it: what follows the name and a colon in a text, or the object of parameters as compact JSON,
    /// its members in the order of their names.
    public let reference: String
    /// What the provider knows it by.
    public let key: String

    /// - Parameters:
    ///   - name: the provider's.
    ///   - reference: what the job says of it, as ``reference`` has it.
    ///   - makeKey: the provider's rule.
    /// - Throws: ``Failure`` `invalid_job` for a reference that is too long, or one whose key is empty, too long or of several
    ///   lines; and what the rule throws.
    public init(
        name: String, reference: String, _ makeKey: (_ name: String, _ reference: String) throws(Failure) -> String
    ) throws(Failure) {
        guard reference.utf8.count <= Self.longest else {
            throw Failure(.invalidJob, "\(name): longer than \(Self.longest) bytes")
        }
        do throws(Failure) {
            key = try makeKey(name, reference)
        } catch {
            throw error.within(name)
        }
        guard (1...Self.longest).contains(key.utf8.count), !key.utf8.hasControlCharacter else {
            throw Failure(.invalidJob, "\(name): the provider makes no key of this: one line is wanted")
        }
        self.name = name
        self.reference = reference
    }

    /// Both together, as a job may write them.
    public var text: String { "\(name):\(reference)" }

    /// Whether the bytes are the same. Swift's strings are equal when they look the same; a program may tell those apart.
    public static func == (left: CustomSource, right: CustomSource) -> Bool {
        left.name.utf8.elementsEqual(right.name.utf8) && left.reference.utf8.elementsEqual(right.reference.utf8)
    }

    /// Of the bytes.
    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }
}
