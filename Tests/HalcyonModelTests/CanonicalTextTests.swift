import HalcyonModel
import Testing

@Suite struct CanonicalTextTests {
    func text(_ goal: Sizing.Goal, crop: CropRect = .whole, scale: Double = 1, _ output: OutputOptions = .init())
        -> String
    {
        Variant(sizing: Sizing(goal: goal, cropRect: crop, screenScale: scale), output: output).canonicalText
    }

    @Test func containsEveryFieldThatAffectsTheResult() {
        let display = Display(width: 400, height: 300.5, contentMode: .scaleAspectFit, scaleOptions: .fitCropsExcess)
        let output = OutputOptions(format: .webp, quality: 70, lossless: true, effort: 3, progressive: true)
        let crop = CropRect(x: 0.5, y: 0, width: 0.1234567, height: 1)
        #expect(
            text(.display(display), crop: crop, scale: 2, output) == """
                halcyon-variant/1
                crop=0.5,0,0.1234567,1
                size=400x300.5@2 scaleAspectFit cropsExcess
                format=webp
                quality=70
                lossless
                effort=3
                progressive

                """)
    }

    @Test func writesCropExactly() {
        func line(_ crop: CropRect) -> Substring { text(.original, crop: crop).split(separator: "\n")[1] }
        #expect(
            line(CropRect(x: 1 / 3, y: 1.5e-7, width: 5e-300, height: 1000))
                == "crop=0.3333333333333333,0.00000015,0.\(String(repeating: "0", count: 299))5,1000")
        #expect(line(CropRect(x: -0.0, y: 7, width: 1e7, height: 1, unit: .pixels)) == "crop=0,7,10000000,1 pixels")
        #expect(line(CropRect(x: 0, y: 0, width: 1, height: 1, unit: .pixels)) == "crop=0,0,1,1 pixels")
    }

    @Test func omitsFieldsWithoutEffect() {
        let plain = text(.display(Display(width: 4, height: 3, contentMode: .scaleToFill)))
        #expect(plain == "halcyon-variant/1\nsize=4x3@1 scaleToFill\n")
        for options in ScaleOptions.allCases {
            #expect(text(.display(Display(width: 4, height: 3, contentMode: .redraw, scaleOptions: options))) == plain)
        }
        #expect(text(.original) == text(.sizer(.natural), scale: 3))
        #expect(text(.original, crop: CropRect(x: 0, y: 0, width: 0, height: 0)) == text(.original))
    }

    @Test func distinguishesSizers() {
        #expect(text(.sizer(.aspectScaleDownByWidth(9))) == "halcyon-variant/1\nsize=width 9\n")
        #expect(text(.sizer(.aspectScaleDownByHeight(9))) == "halcyon-variant/1\nsize=height 9\n")
    }

    @Test func distinguishesInterpolationQualities() {
        let lines: [InterpolationQuality: String] = [
            .none: "interpolation=none\n", .low: "interpolation=low\n", .medium: "interpolation=medium\n",
            .high: "interpolation=high\n", .default: "",
        ]
        for quality in InterpolationQuality.allCases {
            let text = Variant(sizing: Sizing(goal: .original), interpolationQuality: quality).canonicalText
            let expected: String = "halcyon-variant/1\nsize=natural\n" + lines[quality, default: "?"]
            #expect(text == expected)
        }
    }

    @Test func keyHasTheSourceHashAsHashTag() throws {
        let source = try Source("http://EXAMPLE.org")
        #expect(SourceRequest(source).canonicalText == "halcyon-source/1\nurl:http://example.org/\n")
        let request = SourceRequest(source, tenant: "a.b")
        #expect(request.canonicalText == "halcyon-source/1\ntenant:a.b\nurl:http://example.org/\n")
        let variant = Variant(sizing: Sizing(goal: .original))
        let key = ResultKey(request, variant: variant) { $0.hasPrefix("halcyon-source") ? "5" : "7" }
        #expect(key.description == "halcyon:{5}:7")
    }
}
