private let mask = "****"

/// Stars that do not tell the length; nothing stays nothing, so that one sees what is not set.
func stars(for secret: String) -> String { secret.isEmpty ? "" : mask }

/// The text with stars for the password of each URL in it (`redis://user:****@host`). Where the end of a password is in
/// doubt, more is hidden rather than less.
func withoutPasswords(_ text: String) -> String {
    text.split(separator: " ", omittingEmptySubsequences: false).map { word in
        guard let scheme = word.firstRange(of: "://"), let at = word.lastIndex(of: "@"), at > scheme.upperBound,
            let colon = word[scheme.upperBound..<at].firstIndex(of: ":")
        else { return String(word) }
        return word[...colon] + mask + word[at...]
    }.joined(separator: " ")
}
