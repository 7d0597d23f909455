import HalcyonModel
import TestSupport

/// Generates random processors of every kind with some of their parameters.
struct RandomProcessors {
    var generator: SeededNumbers

    /// Required and optional parameters, each with the values to choose from.
    struct Shape {
        var required: [RandomJobs.Field] = []
        var optional: [RandomJobs.Field] = []
    }

    static let shapes: [(name: String, shape: Shape)] = [
        ("roundCorner", Shape(required: [("radius", lengths + [0])], optional: [corners, background])),
        ("roundCorner", Shape(required: [("widthFraction", parts)], optional: [corners, ("radius", [nil])])),
        ("roundCorner", Shape(required: [("heightFraction", parts)], optional: [background])),
        ("resize", Shape(required: size, optional: [("mode", words(ResizeMode.allCases) + [nil])])),
        ("crop", Shape(required: size, optional: [("anchor", [["x": 0, "y": 0.3333335], ["x": 1, "y": 0.5], nil])])),
        ("blur", Shape(required: [("radius", [0.5, 4, 62.5, 1e-9, 2.0000005])])),
        ("tint", Shape(required: [color])),
        ("overlay", Shape(required: [color], optional: [("fraction", parts + [nil]), ("source", [nil])])),
        ("overlay", Shape(required: [("source", RandomJobs.sources)], optional: [opacity, mode, ("color", [nil])])),
        (
            "blend",
            Shape(
                required: [("mode", words(BlendMode.allCases)), ("background", RandomJobs.colors)], optional: [opacity]
            )
        ),
        (
            "colorControls",
            Shape(optional: [
                ("brightness", [-1, 1, 0.25, nil]), ("contrast", [0, 4, 1.1]), ("saturation", [0, 4, 1]),
                ("exposure", [-10, 10, 0.7, -0.3333335]),
            ])
        ),
        ("blackWhite", Shape()),
        ("border", Shape(required: [("width", lengths)], optional: [color, corners, ("radius", lengths + [0, nil])])),
        ("border", Shape(required: [("width", [1])], optional: [("widthFraction", parts), corners])),
        ("downsample", Shape(required: size)),
        ("sharpen", Shape(optional: [("radius", [0.1, 10, 0.5]), ("amount", [0, 10, 0.75, nil])])),
        ("pixelate", Shape(required: [("size", lengths)])),
        (
            "watermark",
            Shape(
                required: [("source", RandomJobs.sources)],
                optional: [
                    ("position", words(ContentMode.unscaled) + [nil]), ("margin", lengths + [0, 0.4]),
                    ("widthFraction", [1, 0.25, 1e-9, nil]), opacity, ("tiled", [true, false, nil]), offset, mode,
                ])
        ),
        (
            "rotate",
            Shape(
                required: [("degrees", [0, 90, -90, 359.9999999, -1e-9, 45.5, 1e300, 720.25, -0.0])],
                optional: [background])
        ),
        ("flip", Shape(optional: [("direction", words(Flip.allCases) + [nil])])),
        (
            "watermark",
            Shape(required: [("source", RandomJobs.sources), ("scale", [1, 0.5, 16, 1e-9])], optional: [mode])
        ),
        (
            "pad",
            Shape(optional: [
                ("all", lengths + [0, nil]), ("top", lengths + [0, nil]), ("left", lengths), ("right", [0, 3, nil]),
                ("bottom", [7]), color,
            ])
        ),
        ("pad", Shape(required: [("fill", words(Pad.Fill.allCases))], optional: [("top", lengths)])),
        (
            "text",
            Shape(
                required: [
                    ("text", ["a", "two\nlines", "back\\slash", "J\u{301} \u{1f600} <b>&amp;"]),
                    ("font", ["DejaVu Sans", "A.b-c_1"]),
                ],
                optional: [
                    ("bold", [true, false, nil]), ("italic", [true, nil]), ("size", lengths), ("width", lengths),
                    ("height", lengths + [nil]), ("align", words(TextOverlay.Alignment.allCases) + [nil]), color,
                    ("outlineWidth", [0, 1, 2.5, nil]), ("outlineColor", RandomJobs.colors), opacity,
                    ("position", words(ContentMode.unscaled) + [nil]), ("margin", [0, 4.5, nil]), offset,
                ])
        ),
        ("mask", Shape(required: [("shape", words(Mask.Shape.allCases))], optional: [("source", [nil])])),
        ("mask", Shape(required: [("source", RandomJobs.sources)], optional: [("shape", [nil])])),
        ("hue", Shape(required: [("degrees", [0, 359.9999999, -1e-9, 45.5, 720.25, -0.0])])),
        ("gamma", Shape(optional: [("gamma", [0.1, 10, 2.2, 1.0000005, nil])])),
        ("normalize", Shape(optional: [("lower", [0, 1, 33.3333335, nil]), ("upper", [100, 99, 51, nil])])),
        (
            "blurFaces",
            Shape(optional: [
                ("amount", [0.05, 1, 0.3333335, nil]), ("margin", [0, 2, 0.1, nil]), ("confidence", [0, 1, 0.5, nil]),
            ])
        ),
        (
            "pixelateFaces",
            Shape(optional: [("cells", [1, 32, 6, nil]), ("margin", [0, 2, nil]), ("confidence", [0, 1, 0.25, nil])])
        ),
        ("duotone", Shape(required: [("dark", RandomJobs.colors), ("light", RandomJobs.colors)])),
    ]

    /// Returns a valid processor.
    mutating func next() -> JSONValue {
        if Int.random(in: 0..<6, using: &generator) == 0 {
            return pick([
                "blackWhite", "colorControls", "sharpen", "flip", "gamma", "normalize", "pad", "blurFaces",
                "pixelateFaces",
            ])
        }
        let (name, shape) = pick(Self.shapes)
        var members = shape.required.map { JSONValue.Member(name: $0.name, value: pick($0.values)) }
        for field in shape.optional where Bool.random(using: &generator) {
            members.append(.init(name: field.name, value: pick(field.values)))
        }
        members.shuffle(using: &generator)
        return .object([.init(name: name, value: .object(members))])
    }

    /// Invalid processors, and valid ones with one parameter of another type, out of range, missing or misspelled.
    static let faults: [JSONValue] =
        invalidProcessors
        + shapes.flatMap { name, shape in
            let fields = shape.required + shape.optional
            return fields.indices.flatMap { mutations(name, fields, at: $0) }
        }

    /// Replaces one field by values of other kinds, then leaves it out, then misspells it.
    private static func mutations(_ name: String, _ fields: [RandomJobs.Field], at place: Int) -> [JSONValue] {
        let valid = fields.map { JSONValue.Member(name: $0.name, value: $0.values[0]) }
        var all: [JSONValue] = []
        func add(_ members: [JSONValue.Member]) { all.append(.object([.init(name: name, value: .object(members))])) }
        for value in replacements {
            var members = valid
            members[place].value = value
            add(members)
        }
        var members = valid
        let member = members.remove(at: place)
        add(members)
        add(members + [.init(name: member.name + "s", value: member.value)])
        return all
    }

    private static let replacements: [JSONValue] = [
        nil, true, -1, 0, 1e-9, 0.5, 1, 2, 11, 251, 65_536, 1e300, "", "red", [], [:],
    ]

    private static let invalidProcessors: [JSONValue] = [
        nil, 1, "blur", "flop", "", [:], [], ["blackWhite": nil], ["blackWhite": []], ["blackWhite": ["a": 1]],
        ["flip": [:], "blackWhite": [:]], ["flop": [:]], ["roundCorner": [:]],
        ["roundCorner": ["radius": 1, "widthFraction": 0.5]],
        ["border": ["width": 1, "radius": 1, "heightFraction": 0.5]],
        ["overlay": [:]], ["overlay": ["color": "red", "source": "http://h/a"]],
        ["overlay": ["color": "red", "opacity": 1]], ["overlay": ["source": "http://h/a", "fraction": 1]],
        ["watermark": ["source": "ftp://h/a"]], ["watermark": ["source": "http://h/a", "position": "scaleToFill"]],
        ["roundCorner": ["radius": 1, "corners": []]],
        ["roundCorner": ["radius": 1, "corners": ["topLeft", "topLeft"]]],
        ["roundCorner": ["radius": 1, "corners": ["top"]]], ["rotate": ["degrees": "90"]],
        ["pad": ["fill": "blur", "color": "red"]], ["mask": [:]], ["mask": ["shape": "star", "source": "http://h/a"]],
        ["normalize": ["lower": 49.5]], ["text": ["text": "a"]], ["text": ["text": " \n", "font": "a"]],
        ["text": ["text": "a\u{7}", "font": "a"]], ["text": ["text": "a", "font": "a,b"]],
        ["text": ["text": "a", "font": " a"]], ["text": ["text": "a", "font": "a", "offset": ["z": 1]]],
        ["watermark": ["source": "http://h/a", "scale": 1, "widthFraction": 1]],
    ]

    private static let lengths: [JSONValue] = [8, 0.5, 2.4999999999, 100.5, 1e-9, 33.3333335]
    private static let parts: [JSONValue] = [0, 1, 0.5, 0.3333335]
    private static let size: [RandomJobs.Field] = [("width", lengths), ("height", lengths)]
    private static let color: RandomJobs.Field = ("color", RandomJobs.colors)
    private static let background: RandomJobs.Field = ("background", RandomJobs.colors + [nil])
    private static let mode: RandomJobs.Field = ("mode", words(BlendMode.allCases) + [nil])
    private static let offset: RandomJobs.Field = (
        "offset", [["x": -3.5], ["y": 1e-9, "x": nil], ["x": 0, "y": -0.0], ["x": 12.25, "y": -65535], nil]
    )
    private static let opacity: RandomJobs.Field = ("opacity", parts + [nil])
    private static let corners: RandomJobs.Field = (
        "corners",
        [["topLeft"], ["bottomRight", "topLeft"], ["topLeft", "topRight", "bottomRight", "bottomLeft"], nil]
    )

    private static func words(_ choices: [some RawRepresentable<String>]) -> [JSONValue] {
        choices.map { .string($0.rawValue) }
    }

    private mutating func pick<Value>(_ values: [Value]) -> Value { values.randomElement(using: &generator)! }
}
