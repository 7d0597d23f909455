import Digests
import HalcyonModel
import JSON

extension Source: JSONWritable {
    /// As a job names it: who reads that gets an equal source.
    public func write(to writer: inout JSONWriter) {
        switch self {
        case .web, .file, .s3, .custom: writer.value(text)
        case .initials(let initials):
            writer.object { writer in
                writer.member("initials", initials.text)
                writer.member("background", initials.background.hexadecimal)
                writer.member("foreground", initials.foreground.hexadecimal)
            }
        case .data(let data):
            writer.object { writer in
                writer.member("base64", Base64.encode(data.bytes))
                writer.member("cacheKey", data.name)
            }
        case .video(let video):
            writer.object { writer in
                writer.member("video", video.input)
                writer.member("seconds", video.seconds)
            }
        }
    }
}
