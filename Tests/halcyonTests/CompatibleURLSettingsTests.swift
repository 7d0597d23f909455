import HalcyonGateway
import ProgramSettings
import Testing

@testable import HalcyonCLI

/// Settings of the URLs of imgproxy, thumbor and imagor.
@Suite struct CompatibleURLSettingsTests {
    private static func urls(_ settings: [String: String]) throws -> CompatibleURLOptions {
        let flags = settings.sorted { $0.key < $1.key }.map {
            SettingFlag(name: "gateway.urls.\($0.key)", flag: "--\($0.key)", value: $0.value)
        }
        return try CompatibleURLOptions(Settings(ProgramOptions.schema, flags: flags).options)
    }

    private static func errorMessage(_ settings: [String: String]) -> String {
        do {
            _ = try urls(settings)
            return ""
        } catch { return "\(error)" }
    }

    @Test func nothingIsServedByDefault() throws {
        let urls = try Self.urls([:])
        #expect(urls.imgproxy.prefix.isEmpty && urls.thumbor.prefix.isEmpty && urls.imagor.prefix.isEmpty)
        #expect(!urls.imgproxy.allowsUnsigned && !urls.thumbor.allowsUnsigned && !urls.imagor.allowsUnsigned)
        #expect(urls.imgproxy.quality == 80 && urls.imgproxy.formatQualities == [.webp: 79, .avif: 63, .jxl: 77])
        #expect(urls.thumbor.defaultScheme == "http" && urls.imagor.defaultScheme == "https")
    }

    @Test func settingsReachTheGateway() throws {
        let urls = try Self.urls([
            "imgproxy.prefix": "/", "imgproxy.keys.a": "00:01", "imgproxy.keys.b": "02:03",
            "imgproxy.signatureSize": "8",
            "imgproxy.presets.card": "rs:fill:1:1", "imgproxy.formatQuality": "jpg=70,webp=60",
            "thumbor.prefix": "/thumbor", "thumbor.keys.a": "secret", "thumbor.defaultScheme": "https",
            "imagor.prefix": "/imagor", "imagor.keys.a": "secret", "imagor.signerType": "sha256",
            "imagor.signerTruncate": "40", "imagor.baseURL": "https://i.example/", "formats": "avif,webp",
        ])
        #expect(urls.imgproxy.keys.count == 2 && urls.imgproxy.signatureSize == 8)
        #expect(urls.imgproxy.presets == ["card": "rs:fill:1:1"])
        #expect(urls.imgproxy.formatQualities == [.jpeg: 70, .webp: 60])
        #expect(urls.thumbor.keys == [Array("secret".utf8)] && urls.thumbor.defaultScheme == "https")
        #expect(
            urls.imagor.algorithm == .sha256 && urls.imagor.signatureLength == 40 && urls.formats == [.avif, .webp])
    }

    @Test(arguments: [
        (["imgproxy.prefix": "/"], "gateway.urls.imgproxy.keys: expected a key"),
        (["thumbor.prefix": "/"], "gateway.urls.thumbor.keys: expected a key"),
        (["imgproxy.keys.a": "secret"], "gateway.urls.imgproxy.keys.a: expected KEY:SALT"),
        (["imagor.keys.a": ""], "gateway.urls.imagor.keys.a: expected a key"),
        (["imagor.signerTruncate": "5"], "gateway.urls.imagor.signerTruncate: expected 0 or at least 20"),
        (["imgproxy.formatQuality": "webp=200"], "gateway.urls.imgproxy.formatQuality: expected formats"),
        (["imagor.prefix": "/v1", "imagor.allowUnsigned": "true"], "gateway.urls.imagor.prefix: expected / or a path"),
        (["imgproxy.presets.a": "mw:1"], "gateway.urls.imgproxy.presets.a: imgproxy: mw:1 is not supported"),
        (["thumbor.baseURL": "/images"], "gateway.urls.thumbor.baseURL: expected a URL"),
    ])
    func rejectsInvalidSettings(_ settings: [String: String], _ message: String) {
        #expect(Self.errorMessage(settings).hasPrefix(message), "\(Self.errorMessage(settings))")
        // Secrets are not part of messages.
        #expect(!Self.errorMessage(settings).contains("secret"))
    }

    @Test func secretsAreMasked() throws {
        let flags = ["imgproxy.keys.a": "0011:2233", "thumbor.keys.a": "thumborkey", "imagor.keys.a": "imagorkey"].map {
            SettingFlag(name: "gateway.urls.\($0.key)", flag: "--\($0.key)", value: $0.value)
        }
        let listing = try Settings(ProgramOptions.schema, flags: flags).listing.map { "\($0.name) \($0.value)" }
        #expect(listing.contains { $0.hasPrefix("gateway.urls.imagor.keys.a ") })
        #expect(!listing.contains { $0.contains("0011") || $0.contains("thumborkey") || $0.contains("imagorkey") })
    }
}
