import CVips
import Glibc
import HalcyonCoding
import HalcyonImaging
import HalcyonModel
import MalformedImages
import Vips

/// Renders one malformed file with several jobs, as a worker does, in a process of its own, and prints the outcomes and
/// the resources used:
///
///     MalformedImageRunner NAME
///
/// Without a name it prints all names.
/// Each line of the output is a keyword and a value: `end CODE MESSAGE` or `end renders` for each of
/// ``MalformedImage/jobs``, `memory BYTES` for the peak of this process and `child BYTES` for that of its children (not
/// under a sanitizer, which allocates memory itself), `note TEXT` for the log events of the children, `pixels BYTES`
/// for the peak of libvips' own memory in this process, and `alive OBJECTS` for the objects of libvips that are left.
@main enum MalformedImageRunner {
    static func main() async throws {
        // Child processes run this program too.
        if CommandLine.arguments.dropFirst().first == "render-child" { exit(RenderProcessProgram.run()) }
        let files = MalformedImage.all()
        guard CommandLine.arguments.count == 2 else {
            for file in files { print(file.name) }
            return
        }
        guard let file = files.first(where: { $0.name == CommandLine.arguments[1] }) else { exit(2) }
        // Ends renderings that hang despite all limits.
        alarm(3600)
        try await render(file)
    }

    private static func render(_ file: MalformedImage) async throws {
        let bytes = file.bytes()
        let jobs = try MalformedImage.jobs.map {
            try JobDecoder().read(Array($0.utf8), defaultID: "hostile").job.variants
        }
        // Creating the file is not measured, so the peak is reset (proc(5), clear_refs).
        if let clearRefs = fopen("/proc/self/clear_refs", "w") {
            fputs("5", clearRefs)
            fclose(clearRefs)
        }
        var options = RenderProcessOptions(program: "/proc/self/exe", arguments: ["render-child"])
        options.memory = MalformedImage.renderProcessMemory
        let children = RenderProcessPool(options) { print("note", $0) }
        let pool = Renderer.makePool(threads: 1)
        let service = RenderService(renderer: Renderer(limits: file.limits), pool: pool, children: children)
        for variants in jobs { print("end", await outcome(bytes, variants, service)) }
        pool.shutdown()
        children.shutdown()

        let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
        if !isSanitized {
            if let memory = peakMemory() { print("memory", memory) }
            var usage = rusage()
            getrusage(RUSAGE_CHILDREN.rawValue, &usage)
            print("child", usage.ru_maxrss << 10)
        }
        print("pixels", vips_tracked_get_mem_highwater())
        print("alive", VipsLibrary.liveObjects)
    }

    /// Renders, and returns the code of the failure, or `renders`.
    private static func outcome(_ bytes: [UInt8], _ variants: [Variant], _ service: RenderService) async -> String {
        do {
            let images = try await service.render(bytes, variants).images
            return images.count != variants.count || images.contains(where: \.body.isEmpty) ? "nothing" : "renders"
        } catch let failure as JobError {
            return "\(failure.code.rawValue) \(failure.message)"
        } catch {
            return "error \(error)"
        }
    }

    /// The peak memory of this process, in bytes.
    private static func peakMemory() -> Int? {
        guard let status = fopen("/proc/self/status", "r") else { return nil }
        defer { fclose(status) }
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { free(line) }
        while getline(&line, &capacity, status) > 0, let line {
            let words = String(cString: line).split { $0 == " " || $0 == "\t" || $0 == "\n" }
            if words.first == "VmHWM:" { return words.dropFirst().first.flatMap { Int($0) }.map { $0 << 10 } }
        }
        return nil
    }
}
