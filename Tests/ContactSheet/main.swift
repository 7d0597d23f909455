import HalcyonImaging
import HalcyonModel
import Vips

// Renders the contact sheet of docs/processors.md: `ContactSheet PHOTOGRAPH OVERLAY OUTPUT`, used by
// `make contact-sheet`. Each image is rendered like that of a job.

let arguments = CommandLine.arguments
guard arguments.count == 4 else { fatalError("usage: ContactSheet PHOTOGRAPH OVERLAY OUTPUT") }
let sheet = try Sheet(photograph: try bytes(of: arguments[1]), overlay: try bytes(of: arguments[2]))
try write(try sheet.render(Sheet.cells), to: arguments[3])
