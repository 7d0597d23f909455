import HalcyonModel
import Testing

@Suite struct CSSColorTests {
    @Test(arguments: [
        ("black", "#000000ff"), ("white", "#ffffffff"), ("RebeccaPurple", "#663399ff"), ("lightgrey", "#d3d3d3ff"),
        ("transparent", "#00000000"), ("#F80", "#ff8800ff"), ("#f80a", "#ff8800aa"), ("#0a0B0c", "#0a0b0cff"),
        ("#0A0b0C0d", "#0a0b0c0d"),
        ("rgb(255, 136, 0)", "#ff8800ff"), ("rgb(255 136 0)", "#ff8800ff"), ("RGBA(255,136,0,0.5)", "#ff880080"),
        ("rgb(100% 50% 0% / 25%)", "#ff800040"), ("rgb( 1 , 2 , 3 )", "#010203ff"), ("rgb(1 2 3/.2)", "#01020333"),
        ("rgb(300,-5,0.5)", "#ff0001ff"), ("rgb(1,2,3,7)", "#010203ff"), ("rgb(1,2,3,-1)", "#01020300"),
        ("hsl(0 100% 50%)", "#ff0000ff"), ("hsl(120,100%,25%)", "#008000ff"),
        ("hsl(240deg 100% 50% / 0.5)", "#0000ff80"),
        ("hsla(-120, 100%, 50%, 1)", "#0000ffff"), ("hsl(480 100% 25%)", "#008000ff"), ("hsl(30 0% 50%)", "#808080ff"),
        ("hsl(210 50% 40%)", "#336699ff"), ("hsl(0 200% 50%)", "#ff0000ff"),
    ])
    func readsCSSColors(text: String, hexadecimal: String) throws {
        #expect(try #require(CSSColor(text)).hexadecimal == hexadecimal)
    }

    @Test(arguments: [
        "", " ", "whit", "white ", " white", "currentcolor", "#", "#f", "#ff", "#fffff", "#fffffff", "#fffffffff",
        "#ggg",
        "#-12", "ff8800", "0xff8800", "rgb", "rgb()", "rgb(1,2)", "rgb(1 2)", "rgb(1 2 3 4)", "rgb(1,2,3,4,5)",
        "rgb(1,,2,3)", "rgb(,1,2,3)", "rgb(1,2,3,)", "rgb(1/2/3)", "rgb(/1 2 3)", "rgb(1 2 3/)", "rgb(1 2 3 / 4 / 5)",
        "rgb(1 2 3 4 / 5)", "rgb(1,2,3/4)", "rgb(0x10,2,3)", "rgb(nan,2,3)", "rgb(inf 2 3)", "rgb(1e6,2,3)",
        "rgb(1 2 none)", "rgb(1, 2, 3", "rgb 1,2,3)", "rgb (1,2,3)", "rgb(1,2,3))", "((1,2,3)", "hsl(1,2,3)",
        "hsl(1% 2% 3%)", "hsl(1turn 2% 3%)", "hsl(deg 2% 3%)", "hsl(1 2% %)", "hsv(1 2% 3%)", "rgb(1 2 3)\n",
        "blac\u{212a}", "#\u{ff11}\u{ff12}\u{ff13}", "rgb(\u{661},2,3)", "white\u{301}", "#fff\u{301}",
    ])
    func rejectsInvalidColors(text: String) {
        #expect(CSSColor(text) == nil)
    }

    @Test func roundTripsThroughHexadecimal() {
        for step in 0..<256 {
            let color = CSSColor(
                red: UInt8(step), green: UInt8(255 - step), blue: UInt8(step * 7 % 256), alpha: UInt8(step * 13 % 256))
            #expect(CSSColor(color.hexadecimal) == color)
        }
    }

    @Test func randomTextIsRejectedOrRoundTrips() {
        var generator = SystemRandomNumberGenerator()
        let pieces = ["rgb(", "hsl(", ")", "#", "%", ",", " ", "/", "1", "-", "e", ".", "deg", "f", "é", "\u{0}"]
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 0...9, using: &generator)).map { _ in pieces.randomElement()! }.joined()
            if let color = CSSColor(text) { #expect(CSSColor(color.hexadecimal) == color, "\(text)") }
        }
    }
}
