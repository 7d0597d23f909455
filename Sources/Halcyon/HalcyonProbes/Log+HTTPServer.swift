import HTTPServer
import Telemetry

extension Log {
    /// Takes what a server notes: for finding faults, unless somebody has to do something about it.
    public func take(_ note: HTTPServer.Note) {
        switch note {
        case .takesNone(let reason):
            warning(
                "no connection can be taken for now",
                ["reason": reason, "hint": "raise the limit of open files (ulimit -n), or lower gateway.connections"])
        case .handlerFailed, .unsendable, .refused, .dropped, .library: debug("http", ["note": "\(note)"])
        }
    }
}
