import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

@Suite(.limitedParallelism) struct ExtensionTests {
    struct Invert: ImageProcessor {
        var name = "invert"

        func validate(_ parameters: String) throws(JobError) {
            guard parameters == "{}" else { throw JobError(.invalidJob, "expected no parameters, found \(parameters)") }
        }

        func process(_ image: Image, parameters: String) throws -> Image {
            try Operation.call("invert", ["in": .image(image)]).image()
        }
    }

    /// Doubles the width. `announced` is the factor that it announces.
    struct Widen: ImageProcessor {
        let name = "widen"
        let makesTransparency = true
        var announced = 2

        func size(of size: PixelSize, parameters: String) -> PixelSize {
            PixelSize(width: size.width * announced, height: size.height)
        }

        func process(_ image: Image, parameters: String) throws -> Image {
            try Operation.call("zoom", ["input": .image(image), "xfac": 2, "yfac": 1]).image()
        }
    }

    struct Broken: ImageProcessor {
        struct Reason: Error {}
        let name = "broken"

        func process(_ image: Image, parameters: String) throws -> Image {
            switch parameters {
            case "{\"how\":\"float\"}": try Operation.call("cast", ["in": .image(image), "format": "float"]).image()
            case "{\"how\":\"bands\"}": try Operation.call("bandjoin", ["in": .images([image, image])]).image()
            case "{\"how\":\"vips\"}": try Operation.call("no-such-operation", [:]).image()
            default: throw Reason()
            }
        }
    }

    struct Half: ImageSizer {
        let name = "half"

        func validate(_ parameters: String) throws(JobError) {
            guard parameters != "{\"no\":1}" else { throw JobError(.invalidJob, "no") }
        }

        func plan(for size: PixelSize, parameters: String) throws(JobError) -> SizingPlan {
            SizingPlan(scaling: size, to: PixelSize(width: size.width / 2, height: size.height / 2))
        }
    }

    struct Fixed: ImageSizer {
        let name = "fixed"
        let plan: SizingPlan

        func plan(for size: PixelSize, parameters: String) throws(JobError) -> SizingPlan { plan }
    }

    let picture = Bitmap([1, 2, 3], width: 4, height: 2)

    func custom(_ name: String, _ parameters: String = "{}") -> Processor {
        .custom(CustomExtension(name: name, parameters: parameters))
    }

    @Test func appliesRegisteredProcessorsInOrder() async throws {
        let extensions = try Extensions(processors: [Invert(), Widen()], sizers: [Half()])
        #expect(extensions.processorNames == ["invert", "widen"] && extensions.sizerNames == ["half"])
        let result = try await applied(
            custom("invert"), .tint(CSSColor(red: 255, green: 0, blue: 0, alpha: 51)), custom("widen"), to: picture,
            extensions: extensions)
        #expect(result.width == 8 && result[7, 1] == [254, 202, 202])
    }

    @Test func rejectsInvalidNamesOnRegistration() {
        func error(_ names: [String]) -> ExtensionError? {
            do {
                _ = try Extensions(processors: names.map { Invert(name: $0) })
                return nil
            } catch {
                return error
            }
        }
        #expect(error(["a", "b-2", "C_c.d"]) == nil)
        #expect(error(["a", "b", "a"]) == .doubled(kind: "processor", name: "a"))
        #expect(error(["blur"]) == .builtIn(kind: "processor", name: "blur"))
        for name in ["", "a b", "a\n", "ü", "{", "a:b", String(repeating: "a", count: 65)] {
            #expect(error([name]) == .malformed(kind: "processor", name: name))
        }
        #expect(throws: ExtensionError.doubled(kind: "sizer", name: "half")) {
            try Extensions(sizers: [Half(), Half()])
        }
    }

    @Test func rejectsNamesOfBuiltInProcessors() {
        for name in Processor.names {
            #expect(throws: ExtensionError.self) { try Extensions(processors: [Invert(name: name)]) }
        }
        #expect(Processor.names.count == 25)
    }

    @Test func validatesParametersBeforeLoading() throws {
        let extensions = try Extensions(processors: [Invert()], sizers: [Half()])
        func failure(_ variant: Variant) -> JobError? {
            do {
                try extensions.validate(variant)
                return nil
            } catch {
                return error
            }
        }
        var variant = Variant(
            sizing: Sizing(goal: .custom(CustomExtension(name: "half"))), processors: [custom("invert")])
        #expect(failure(variant) == nil)
        variant.processors.append(custom("invert", "{\"a\":1}"))
        #expect(failure(variant)?.code == .invalidJob)
        #expect(failure(variant)?.message == "invert: expected no parameters, found {\"a\":1}")
        variant.processors = [custom("outvert")]
        #expect(failure(variant)?.message == "processors: nothing is registered as outvert")
        variant = Variant(sizing: Sizing(goal: .custom(CustomExtension(name: "half", parameters: "{\"no\":1}"))))
        #expect(failure(variant)?.message == "half: no")
    }

    @Test func checksTheOutputOfProcessors() async throws {
        let extensions = try Extensions(processors: [Broken(), Widen(announced: 3)])
        func failure(_ processor: Processor) async -> JobError? {
            do {
                _ = try await applied(processor, to: picture, extensions: extensions)
                return nil
            } catch {
                return error as? JobError
            }
        }
        for how in ["float", "bands", "vips", "error"] {
            let failure = await failure(custom("broken", "{\"how\":\"\(how)\"}"))
            #expect(failure?.code == .internal && failure?.message.contains("broken") == true, "\(how)")
        }
        let wide = await failure(custom("widen"))
        #expect(wide?.message == "the processor widen made 8×2 pixels instead of the announced 12×2")
        #expect(await failure(custom("unknown"))?.code == .invalidJob)
    }

    @Test func checksThePlanOfSizers() throws {
        let size = PixelSize(width: 40, height: 30)
        let good = SizingPlan(
            sourceRect: PixelRect(x: 10, y: 0, width: 30, height: 30), outputSize: PixelSize(width: 9, height: 9),
            destRect: PixelRect(x: 1, y: 1, width: 8, height: 8))
        func failure(_ change: (inout SizingPlan) -> Void) throws -> JobError? {
            var plan = good
            change(&plan)
            do {
                _ = try Extensions(sizers: [Fixed(plan: plan)]).plan(CustomExtension(name: "fixed"), for: size)
                return nil
            } catch {
                return error as? JobError
            }
        }
        #expect(try failure { _ in } == nil)
        for change: (inout SizingPlan) -> Void in [
            { $0.sourceRect.x = 11 }, { $0.sourceRect.y = -1 }, { $0.sourceRect.height = Int.max },
            { $0.sourceRect.x = Int.min }, { $0.destRect.x = 2 }, { $0.destRect.height = 9 }, { $0.destRect.y = -1 },
            { $0.sourceRect.width = 0 }, { $0.destRect.height = -5 },
        ] {
            let failure = try failure(change)
            #expect(failure?.code == .internal && failure?.message.contains("the sizer fixed") == true)
        }
        let plan = try Extensions(sizers: [Half()]).plan(CustomExtension(name: "half"), for: size)
        #expect(plan.outputSize == PixelSize(width: 20, height: 15))
    }

    @Test func checksTheSizeAfterEachProcessor() throws {
        let extensions = try Extensions(processors: [Widen()])
        let limits = ImageLimits(outputPixels: 10_000)
        let size = PixelSize(width: 50, height: 50)
        func admit(_ processors: [Processor], frames: Int = 1) -> JobError? {
            do {
                _ = try limits.admit(processors, on: size, frames: frames, extensions)
                return nil
            } catch {
                return error
            }
        }
        let grow = Processor.resize(PixelSize(width: 100, height: 100), .none)
        #expect(admit([grow]) == nil)
        #expect(
            try limits.admit([grow, custom("widen"), .flip(.both)].dropLast(2), on: size, extensions).last.width == 100)
        #expect(admit([grow, custom("widen")])?.message.contains("the processor widen would produce 200×100") == true)
        #expect(admit([grow], frames: 2)?.code == .tooManyPixels)
        #expect(admit([grow, .rotate(degrees: 45, background: .white)])?.code == .tooManyPixels)
        // An intermediate image is too large even if the output is small.
        #expect(admit([custom("widen"), custom("widen"), custom("widen"), .crop(size, anchor: .center)]) != nil)
        #expect(admit([.resize(PixelSize(width: 1, height: 65_535), .aspectFill)])?.code == .tooManyPixels)
        #expect(extensions.makesTransparency(custom("widen")) && !extensions.makesTransparency(.blackWhite))
    }
}
