import Glibc
import Subprocess

/// An origin: nginx on a free port of 127.0.0.1, serving a folder.
public struct Nginx: Sendable {
    /// The port it listens on.
    public let port: UInt16
    /// The process.
    public let process: ChildProcess
    private let state: TemporaryFolder

    /// Starts the server and waits until it answers.
    /// - Parameters:
    ///   - root: absolute path of the folder to serve.
    ///   - port: a reserved port to listen on; a new one unless given.
    ///   - server: what else stands in the `server` block, as nginx reads it; the echo module is there where Debian has it.
    /// - Throws: ``NginxError`` when it refuses its configuration.
    public static func start(
        serving root: String, port: UInt16 = LoopbackPort.reserve(), _ server: String = ""
    ) async throws -> Nginx {
        let state = TemporaryFolder("nginx")
        let echo = "/usr/lib/nginx/modules/ngx_http_echo_module.so"
        // One process, so that its id is the whole server. Temporary paths are named because the built-in ones are not
        // writable for everyone.
        let configuration = """
            daemon off;
            master_process off;
            pid \(state.path)/pid;
            error_log \(state.path)/errors;
            \(access(echo, R_OK) == 0 ? "load_module \(echo);" : "")
            events { worker_connections 1024; }
            http {
                types {
                    image/jpeg jpg; image/png png; image/webp webp; image/gif gif; image/avif avif;
                    image/tiff tiff; image/svg+xml svg; text/plain txt; text/html html; text/javascript mjs;
                }
                log_format requests '$request_method $request_uri $status $bytes_sent';
                access_log \(state.path)/requests requests;
                client_body_temp_path \(state.path)/body;
                proxy_temp_path \(state.path)/proxy;
                fastcgi_temp_path \(state.path)/fastcgi;
                uwsgi_temp_path \(state.path)/uwsgi;
                scgi_temp_path \(state.path)/scgi;
                server {
                    listen 127.0.0.1:\(port);
                    root \(root);
                    \(server)
                }
            }
            """
        let file = state.write(configuration.utf8, to: "nginx.conf")
        let process = try await ChildProcess.start(
            "nginx", ["-c", file, "-p", state.path, "-e", "\(state.path)/errors"])
        try await until("nginx answers on \(port)") { !process.isRunning || LoopbackPort.answers(port) }
        guard process.isRunning else {
            let errors = state.read("errors")
            await state.remove()
            throw NginxError(description: "nginx did not start: \(String(decoding: errors, as: UTF8.self))")
        }
        return Nginx(port: port, process: process, state: state)
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    public var url: String { "http://127.0.0.1:\(port)" }

    /// What was asked for so far, in order of completion: "GET /cat.jpg 200 12345" (method, target, status, bytes
    /// sent). A request is there soon after its answer has been read, not necessarily at once: look with
    /// ``until(_:within:_:)``.
    public func requests() -> [String] {
        String(decoding: state.read("requests"), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Stops it, waits for its end and forgets its logs.
    public func stop() async {
        await process.stop()
        await state.remove()
    }
}

/// nginx did not come up.
public struct NginxError: Error, CustomStringConvertible {
    /// nginx's own words.
    public let description: String
}
