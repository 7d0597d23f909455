import Curl

/// A URL, the outcome of loading it, and the addresses to which connections are made.
struct AddressTestCase {
    let url: String
    let outcome: String
    let connected: [String]

    /// Returns the URL of a host with the port of the tests' origin.
    private static func url(_ host: String) -> String { "http://\(host):8080/" }

    private static func blocked(_ hosts: String...) -> [AddressTestCase] {
        hosts.map { AddressTestCase(url: url($0), outcome: "blocked_address", connected: []) }
    }

    private static func connects(_ address: String, _ hosts: String...) -> [AddressTestCase] {
        hosts.map { AddressTestCase(url: url($0), outcome: "ok", connected: [address]) }
    }

    private static func fails(_ outcome: String, _ hosts: String...) -> [AddressTestCase] {
        hosts.map { AddressTestCase(url: url($0), outcome: outcome, connected: []) }
    }

    /// The cases of the default policy.
    static let all: [AddressTestCase] =
        // IPv4 blocks of IANA's special-purpose registry: first, last and inner addresses.
        blocked(
            "0.0.0.0", "0.0.0.1", "0.255.255.255", "10.0.0.0", "10.0.0.1", "10.127.3.4", "10.255.255.255", "100.64.0.0",
            "100.64.0.1", "100.100.100.200", "100.127.255.255", "127.0.0.0", "127.0.0.1", "127.0.0.53", "127.1.2.3",
            "127.255.255.255", "169.254.0.0", "169.254.0.1", "169.254.169.253", "169.254.169.254", "169.254.170.2",
            "169.254.255.255", "172.16.0.0", "172.16.0.1", "172.20.10.2", "172.31.255.255", "192.0.0.0", "192.0.0.1",
            "192.0.0.170", "192.0.0.255", "192.0.2.0", "192.0.2.1", "192.0.2.255", "192.88.99.0", "192.88.99.1",
            "192.88.99.255", "192.168.0.0", "192.168.0.1", "192.168.1.254", "192.168.255.255", "198.18.0.0",
            "198.18.0.1", "198.19.255.255", "198.51.100.0", "198.51.100.255", "203.0.113.0", "203.0.113.255",
            "224.0.0.0", "224.0.0.1", "232.1.2.3", "239.255.255.250", "239.255.255.255", "240.0.0.0", "240.0.0.1",
            "250.1.2.3", "255.255.255.254", "255.255.255.255")
        // Other notations of these: short, decimal, octal, hexadecimal, mixed, with a trailing dot.
        + blocked(
            "0", "127.1", "127.0.1", "10.1", "10.1.1", "192.168.257", "2130706433", "2130706434", "167772161",
            "3232235777", "2852039166", "017700000001", "0177.0.0.1", "0177.0.0.01", "0177.1", "00000177.0.0.1",
            "012.0.0.1",
            "0300.0250.0.1", "0xa9fea9fe", "0x7f000001", "0x7f.1", "0x7f.0.0.1", "0x7F.0x0.0x0.0x1", "0xA.0.0.1",
            "0xac.0x10.0.1", "0xc0.168.0x1.1", "0300.168.257", "169.254.43518", "0251.0376.0251.0376",
            "0xa9.0xfe.0xa9.0xfe", "00.0.0.0", "0x0")
        // IPv6 addresses that are not public.
        + blocked(
            "[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::2]", "[100::]",
            "[100::1]", "[100::ffff:ffff:ffff:ffff]", "[fc00::]", "[fc00::1]", "[fd00::1]", "[fdff:ffff::1]",
            "[fd12:3456:789a:1::1]", "[fe80::]", "[fe80::1]", "[FE80::1]", "[febf::1]", "[fec0::1]", "[feff::1]",
            "[ff00::1]",
            "[ff01::1]", "[ff02::1]", "[ff02::fb]", "[ff05::2]", "[ff0e::1]", "[ffff::1]", "[2001:db8::]",
            "[2001:db8::1]",
            "[2001:db8:ffff::1]", "[3fff::1]", "[3fff:fff::1]", "[4000::1]", "[5f00::1]", "[8000::1]", "[1::1]",
            "[2001:1::1]", "[2001:2::1]", "[2001:3::1]", "[2001:4:112::1]", "[2001:10::1]", "[2001:20::1]",
            "[2001:30::1]",
            "[2001:1ff::1]")
        // IPv4 inside IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP.
        + blocked(
            "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:10.0.0.1]", "[::FFFF:A9FE:A9FE]",
            "[::ffff:192.168.0.1]", "[::ffff:0.0.0.0]", "[::ffff:100.64.0.1]", "[::ffff:224.0.0.1]", "[::127.0.0.1]",
            "[::7f00:1]", "[::10.0.0.1]", "[::93.184.216.34]", "[::ffff:0:127.0.0.1]", "[::ffff:0:93.184.216.34]",
            "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b::192.168.1.1]", "[64:ff9b:1::1]", "[64:ff9b:1::93.184.216.34]", "[64:ff9b:1:fffe::10.0.0.1]",
            "[2002:7f00:1::1]", "[2002:a00:1::]", "[2002:a9fe:a9fe::1]", "[2002:c0a8:101::1]", "[2002:ac10:1::1]",
            "[2002:6440:1::1]", "[2002:e000:1::1]", "[2001::1]", "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
            "[2001:0:7f00:1::1]", "[2606:4700::5efe:10.0.0.1]", "[2606:4700::5efe:7f00:1]",
            "[2606:4700::200:5efe:192.168.0.1]", "[2606:4700::5efe:169.254.169.254]")
        // Public addresses.
        + connects(
            "93.184.216.34", "93.184.216.34", "1572395042", "0x5db8d822", "0x5d.184.55330", "0135.0270.0330.042",
            "93.12113954", "[::ffff:93.184.216.34]", "[::ffff:5db8:d822]")
        + connects("1.1.1.1", "1.1.1.1", "1.65793", "16843009") + connects("9.255.255.255", "9.255.255.255")
        + connects("11.0.0.1", "11.0.0.1") + connects("100.63.255.255", "100.63.255.255")
        + connects("100.128.0.1", "100.128.0.1") + connects("126.255.255.255", "126.255.255.255")
        + connects("128.0.0.1", "128.0.0.1") + connects("169.253.255.255", "169.253.255.255")
        + connects("169.255.0.1", "169.255.0.1") + connects("172.15.255.255", "172.15.255.255")
        + connects("172.32.0.1", "172.32.0.1") + connects("192.0.1.1", "192.0.1.1")
        + connects("192.167.255.255", "192.167.255.255") + connects("192.169.0.1", "192.169.0.1")
        + connects("198.17.255.255", "198.17.255.255") + connects("198.20.0.1", "198.20.0.1")
        + connects("223.255.255.254", "223.255.255.254")
        + connects("2606:4700::1111", "[2606:4700::1111]", "[2606:4700:0:0::1111]", "[2606:4700:0000::0.0.17.17]")
        + connects("2001:200::1", "[2001:200::1]") + connects("2a00:1450:4001::1", "[2a00:1450:4001::1]")
        + connects("3ffe::1", "[3ffe::1]") + connects("2002:101:101::1", "[2002:101:101::1]")
        + connects("64:ff9b::5db8:d822", "[64:ff9b::93.184.216.34]")
        + connects("2606:4700::5efe:101:101", "[2606:4700::5efe:1.1.1.1]")
        // A malformed address is treated as a name, or rejected.
        + fails(
            "dns_error", "127.0.0.1.", "0x7f.1.", "93.184.216.34.", "256.0.0.1", "127.0.0.1.example",
            "4294967296", "0x100000000", "1.2.3.4.5", "127.0.0.256")
        // No connection is made in either case: curl 8 treats this name as localhost.
        + fails(CurlLibrary.version.hasPrefix("7.") ? "dns_error" : "blocked_address", "localhost.")
        + fails(
            "invalid_job", "[::1", "[fe80::1%25lo]", "[fe80::1%lo]", "[::ffff:127.0.0.1%25x]", "[1::2::3]", "[12345::]",
            "127.0.0.1%00.example", "127%2e0%2e0%2e1", "１２７.0.0.1", "127。0。0。1", "①②⑦.0.0.1", "user@evil@127.0.0.1")
        + names + redirects

    /// Names are checked by the addresses to which they resolve, when connecting.
    private static var names: [AddressTestCase] {
        blocked(
            "localhost", "LOCALHOST", "4-7f000001.test", "4-0a000001.test", "4-a9fea9fe.test",
            "4-00000000.test", "6-00000000000000000000000000000001.test", "6-00000000000000000000ffff7f000001.test",
            "6-fe800000000000000000000000000001.test", "6-20027f00000100000000000000000001.test",
            "4-7f000001.4-c0a80001.test", "user:word@4-7f000001.test")
            + connects("93.184.216.34", "4-5db8d822.test", "user@4-5db8d822.test", "4-7f000001.4-5db8d822.test")
            + connects("2606:4700::1111", "6-26064700000000000000000000001111.test")
            // DNS rebinding: the second answer differs from the first, and one of them is not public.
            + connects("93.184.216.34", "flip-5db8d822-7f000001.test") + blocked("flip-5db8d822-7f000001.test")
            + blocked("flip-7f000001-5db8d822.test") + connects("93.184.216.34", "flip-7f000001-5db8d822.test")
    }

    /// Each target of a redirect is checked like the first URL.
    private static var redirects: [AddressTestCase] {
        func via(_ target: String, _ outcome: String, _ further: String...) -> AddressTestCase {
            AddressTestCase(
                url: "http://93.184.216.34:8080/redirect/\(target)", outcome: outcome,
                connected: ["93.184.216.34"] + further)
        }
        return [
            via("http://127.0.0.1:8080/", "blocked_address"), via("http://[::1]:8080/", "blocked_address"),
            via("http://0x7f.1:8080/", "blocked_address"), via("//10.0.0.1:8080/", "blocked_address"),
            via("http://169.254.169.254/latest/meta-data/", "blocked_address"),
            via("http://[::ffff:127.0.0.1]:8080/", "blocked_address"),
            via("http://4-7f000001.test:8080/", "blocked_address"), via("http://localhost:8080/", "blocked_address"),
            via("http://1.1.1.1:8080/", "ok", "1.1.1.1"), via("/elsewhere", "ok", "93.184.216.34"),
            via("http://1.1.1.1:8080/redirect/http://127.0.0.1:8080/", "blocked_address", "1.1.1.1"),
            via("file:///etc/passwd", "http_error"), via("gopher://127.0.0.1:8080/", "http_error"),
            via("ftp://1.1.1.1/", "http_error"),
        ]
    }
}
