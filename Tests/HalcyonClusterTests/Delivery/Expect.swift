import Testing

/// Compares the result of a mutating call, which `#expect` does not accept.
func expect<Value: Equatable>(_ found: Value, _ expected: Value, at location: SourceLocation = #_sourceLocation) {
    #expect(found == expected, sourceLocation: location)
}
