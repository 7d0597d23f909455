import JSON
import Testing

@Suite struct JSONElementTests {
    func parse(_ text: String) throws -> JSONElement {
        try JSON.parse(Array(text.utf8), maximumSize: 1 << 20)
    }

    @Test func distinguishesKinds() throws {
        let kinds: [(String, JSONElement.Kind)] = [
            ("null", .null), ("false", .bool), ("1", .number), ("1.5", .number), ("18446744073709551615", .number),
            ("\"\"", .string), ("[]", .array), ("{}", .object),
        ]
        for (text, kind) in kinds { #expect(try parse(text).kind == kind) }
        #expect(try parse("null").isNull)
    }

    @Test func readsScalars() throws {
        #expect(try parse("\"grüß\"").string() == "grüß")
        #expect(try parse(#""a\u0000b""#).string() == "a\0b")
        #expect(try parse("true").bool())
        #expect(try parse("1.5").double() == 1.5)
        #expect(try parse("-3").double() == -3)
        #expect(try parse("18446744073709551615").double() == 18446744073709551615.0)
        #expect(try parse("-3").integer() == -3)
        #expect(try parse("400.0").integer() == 400)
        #expect(try parse("4e2").integer(in: 1...400) == 400)
    }

    @Test func optionalAccessorsReturnNilForOtherTypes() throws {
        let root = try parse(#"{"text":"a","whole":3,"half":1.5,"yes":true}"#)
        #expect(root.member("text")?.asString == "a" && root.member("whole")?.asString == nil)
        #expect(root.member("whole")?.asInteger == 3 && root.member("half")?.asInteger == nil)
        #expect(root.member("half")?.asDouble == 1.5 && root.member("text")?.asDouble == nil)
        #expect(root.member("yes")?.asBool == true && root.member("text")?.asBool == nil)
    }

    @Test func rejectsOtherTypesAndInvalidNumbers() throws {
        #expect(throws: JSONError(.wrongType, "expected a string, found a number")) { try parse("1").string() }
        #expect(throws: JSONError(.wrongType, "expected a number, found a string")) { try parse("\"1\"").double() }
        #expect(throws: JSONError(.wrongType, "expected true or false, found null")) { try parse("null").bool() }
        #expect(throws: JSONError(.wrongType, "expected a number, found an array")) { try parse("[]").integer() }
        #expect(throws: JSONError(.wrongType, "expected an object, found an array")) {
            try parse("[]").forEachMember { _, _ in }
        }
        #expect(throws: JSONError(.wrongType, "expected an array, found an object")) {
            try parse("{}").forEachElement { _ in }
        }
        #expect(throws: JSONError(.invalid, "expected a whole number")) { try parse("1.5").integer() }
        #expect(throws: JSONError(.invalid, "expected a whole number")) {
            try parse("9223372036854775808").integer()
        }
        #expect(throws: JSONError(.invalid, "expected a whole number")) { try parse("1e300").integer() }
        #expect(throws: JSONError(.invalid, "expected 1 to 4, found 5")) { try parse("5").integer(in: 1...4) }
        #expect(throws: JSONError(.invalid, "expected at least 1, found 0")) { try parse("0").integer(in: 1 ... .max) }
    }

    @Test func findsMembers() throws {
        let object = try parse(#"{"a":1,"b":{"c":"x"},"aé":2}"#)
        #expect(try object.member("b")?.member("c")?.string() == "x")
        #expect(try object.member("aé")?.integer() == 2)
        #expect(object.member("A") == nil)
        #expect(object.member("") == nil)
        #expect(try parse("[1]").member("a") == nil)
    }

    @Test func visitsMembersAndElementsInOrder() throws {
        var seen: [String] = []
        try parse(#"{"z":[3,1,2],"a":true,"é":null}"#).forEachMember { name, value throws(JSONError) in
            switch name {
            case "a": seen.append("the a")
            case "z": try value.forEachElement { item throws(JSONError) in seen.append("\(try item.integer())") }
            default: seen.append(name.description)
            }
        }
        #expect(seen == ["3", "1", "2", "the a", "é"])
        try parse("{}").forEachMember { _, _ in Issue.record("there is no member") }
        try parse("[]").forEachElement { _ in Issue.record("there is no element") }
    }

    @Test func errorContainsThePath() throws {
        let root = try parse(#"{"variants":[{},{"cropRect":{"width":"wide"}}]}"#)
        let error = #expect(throws: JSONError.self) {
            try root.forEachMember { _, variants throws(JSONError) in
                try variants.forEachElement { variant throws(JSONError) in
                    try variant.forEachMember { _, rect throws(JSONError) in
                        try rect.forEachMember { _, width throws(JSONError) in _ = try width.double() }
                    }
                }
            }
        }
        #expect(error?.path == "variants[1].cropRect.width")
        #expect(error?.description == "variants[1].cropRect.width: expected a number, found a string")
    }

    @Test func rejectsDuplicateNames() throws {
        func object(_ names: [String]) -> String { "{" + names.map { "\"\($0)\":0" }.joined(separator: ",") + "}" }
        func duplicate(_ names: [String]) throws -> String? {
            do {
                try parse(object(names)).forEachMember { _, _ in }
                return nil
            } catch let error as JSONError {
                #expect(error.code == .doubled)
                return error.path
            }
        }
        for count in [1, 2, 31, 32, 33, 5_000] {
            let names = (0..<count).map { "name\($0)" }
            #expect(try duplicate(names) == nil)
            #expect(try duplicate(names + [names[count / 2]]) == names[count / 2])
        }
        #expect(try duplicate(["a", #"\u0061"#]) == "a")
    }
}
