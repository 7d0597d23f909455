import Glibc
import Subprocess

/// An nginx origin on a free port of 127.0.0.1 that serves a folder.
public struct Nginx: Sendable {
    /// The port that nginx listens on.
    public let port: UInt16
    /// The process.
    public let process: ChildProcess
    private let state: TemporaryFolder

    /// Starts the server and waits until it accepts connections.
    /// - Parameters:
    ///   - root: The absolute path of the folder to serve.
    ///   - port: A reserved port; by default a new one.
    ///   - server: Further directives for the `server` block. The echo module is available if Debian's package is
    ///     installed.
    /// - Throws: ``NginxError`` if nginx rejects the configuration.
    public static func start(
        serving root: String, port: UInt16 = LoopbackPort.reserve(), _ server: String = ""
    ) async throws -> Nginx {
        let state = TemporaryFolder("nginx")
        let echo = "/usr/lib/nginx/modules/ngx_http_echo_module.so"
        // A single process, so that one process id stands for the whole server. Temporary paths are set because not all
        // users can write to the built-in ones.
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
                    image/tiff tiff; image/svg+xml svg; text/plain txt; text/html html; text/javascript js mjs;
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
        try await until("nginx accepts connections on port \(port)") {
            !process.isRunning || LoopbackPort.answers(port)
        }
        guard process.isRunning else {
            let errors = state.read("errors")
            await state.remove()
            throw NginxError(description: "nginx failed to start: \(String(decoding: errors, as: UTF8.self))")
        }
        return Nginx(port: port, process: process, state: state)
    }

    /// The base URL, `http://127.0.0.1:PORT`, without a trailing slash.
    public var url: String { "http://127.0.0.1:\(port)" }

    /// Returns the access log in order of completion: "GET /cat.jpg 200 12345" (method, target, status, bytes sent). A
    /// request may appear only some time after its response has been read, so poll with ``until(_:within:_:)``.
    public func requests() -> [String] {
        String(decoding: state.read("requests"), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Waits until the access log has `count` requests, and returns the status of each.
    /// - Throws: ``ConditionTimeout``.
    public func statuses(atLeast count: Int) async throws -> [String] {
        try await until("the origin has answered \(count) requests") { requests().count >= count }
        return requests().map { String($0.split(separator: " ")[2]) }
    }

    /// Stops the server, waits for it to exit and deletes its logs.
    public func stop() async {
        await process.stop()
        await state.remove()
    }
}

/// An error for an nginx that failed to start.
public struct NginxError: Error, CustomStringConvertible {
    /// The error log of nginx.
    public let description: String
}
