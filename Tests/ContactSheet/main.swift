import HalcyonImaging
import HalcyonModel
import Vips

// Draws the contact sheet of docs/processors.md: `ContactSheet PHOTOGRAPH OVERLAY OUTPUT`, as `make contact-sheet` does.
// Each picture is rendered as a job's would be.

let arguments = CommandLine.arguments
guard arguments.count == 4 else { fatalError("usage: ContactSheet PHOTOGRAPH OVERLAY OUTPUT") }
let sheet = try Sheet(photograph: try bytes(of: arguments[1]), overlay: try bytes(of: arguments[2]))
try write(try sheet.draw(Sheet.cells), to: arguments[3])
