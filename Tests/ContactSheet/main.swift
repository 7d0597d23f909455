import HalcyonImaging
import HalcyonModel
import Vips

// Renders the contact sheets of docs/processors.md and docs/jobs.md: `ContactSheet PHOTOGRAPH OVERLAY PROCESSORS
// ENCODINGS`, used by `make contact-sheet`. Each image is rendered like that of a job.

let arguments = CommandLine.arguments
guard arguments.count == 5 else { fatalError("usage: ContactSheet PHOTOGRAPH OVERLAY PROCESSORS ENCODINGS") }
let sheet = try Sheet(photograph: try bytes(of: arguments[1]), overlay: try bytes(of: arguments[2]))
try write(try sheet.render(Sheet.cells), to: arguments[3])
try write(try sheet.render(Sheet.encodings), to: arguments[4])
