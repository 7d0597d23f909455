// Renders one hostile file in several ways, in a process of its own, and says how each of them ended and what it took:
//
//     HostileRunner NAME
//
// Without a name it prints all names.
// Each line of the output is a word and what it says: `end CODE MESSAGE` or `end renders` for each job, `memory BYTES` for the peak of the
// process (not under a sanitizer, which takes memory for itself), `pixels BYTES` for the peak of libvips' own, and
// `alive OBJECTS` for what libvips still holds at the end.

import CVips
import Glibc
import HalcyonImaging
import HalcyonModel
import HalcyonWire
import HostileFiles
import Threads
import Vips

/// Shrunk on loading where that is possible, whole, with excess and slow to encode, and a part of it.
let jobs = [
    #"{"source": "https://a.example/", "width": 100, "height": 100, "format": "jpeg"}"#,
    #"{"source": "https://a.example/", "sizer": "natural", "format": "png"}"#,
    #"{"source": "https://a.example/", "width": 90, "height": 60, "contentMode": "scaleAspectFit", "format": "avif"}"#,
    #"{"source": "https://a.example/", "width": 9, "height": 9, "cropRect": {"x": 0.5, "y": 0.5, "width": 0.3, "height": 0.3}}"#,
]

/// How rendering `bytes` for a job ends: the failure's code, or `renders`.
func end(_ bytes: [UInt8], _ job: String, _ cancellation: Cancellation) throws -> String {
    let renderer = Renderer(limits: HostileFile.limits)
    do {
        let variants = try JobReader().read(Array(job.utf8), defaultID: "hostile").job.variants
        let images = try renderer.render(bytes, variants, cancellation).images
        return images.contains(where: \.body.isEmpty) ? "nothing" : "renders"
    } catch let failure as Failure {
        return "\(failure.code.rawValue) \(failure.message)"
    } catch is CancellationError {
        return "cancelled"
    }
}

/// The most memory that this process has had, in bytes.
func peakMemory() -> Int? {
    let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
    guard !isSanitized, let status = fopen("/proc/self/status", "r") else { return nil }
    defer { fclose(status) }
    var line: UnsafeMutablePointer<CChar>?
    var room = 0
    defer { free(line) }
    while getline(&line, &room, status) > 0, let line {
        let words = String(cString: line).split { $0 == " " || $0 == "\t" || $0 == "\n" }
        if words.first == "VmHWM:" { return words.dropFirst().first.flatMap { Int($0) }.map { $0 << 10 } }
    }
    return nil
}

let files = HostileFile.all() + HostileFile.drawn() + HostileFile.overweight()
guard CommandLine.arguments.count == 2 else {
    for file in files { print(file.name) }
    exit(0)
}
guard
    let file = files.first(where: { $0.name == CommandLine.arguments[1] })
else { exit(2) }

let cancellation = Cancellation()
// It looks at a clock only to end what would not end: a busy machine has all the time it needs.
let watchdog = WorkThread(name: "watchdog") {
    sleep(300)
    cancellation.cancel()
    sleep(60)
    _exit(3)
}
let bytes = file.bytes()
// Making the file is not what is measured: the peak begins anew (proc(5), clear_refs).
if let marks = fopen("/proc/self/clear_refs", "w") {
    fputs("5", marks)
    fclose(marks)
}
for job in jobs { print("end", try end(bytes, job, cancellation)) }
if let memory = peakMemory() { print("memory", memory) }
print("pixels", vips_tracked_get_mem_highwater())
print("alive", VipsLibrary.liveObjects)
exit(0)
