import Testing

/// Compares what a mutating call gave: `#expect` takes no such calls.
func expect<Value: Equatable>(_ found: Value, _ expected: Value, at location: SourceLocation = #_sourceLocation) {
    #expect(found == expected, sourceLocation: location)
}
