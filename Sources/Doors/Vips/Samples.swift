extension Image {
    /// A picture of one colour, computed as it is needed. One number is grey, two are grey and alpha, three are sRGB,
    /// four are sRGB and alpha, each 0 to 255.
    ///
    /// - Throws: ``VipsError`` where the size is none, of code `misuse` for another count of numbers.
    public convenience init(color: [Double], width: Int, height: Int) throws(VipsError) {
        guard (1...4).contains(color.count) else {
            throw VipsError(.misuse, "linear", "a colour has one to four numbers, not \(color.count)")
        }
        let black = try Operation.call("black", ["width": 1, "height": 1, "bands": .int(color.count)]).image()
        let dot = try Operation.call(
            "linear", ["in": .image(black), "a": [1], "b": .doubles(color), "uchar": true]
        ).image()
        let marked = try Operation.call(
            "copy", ["in": .image(dot), "interpretation": color.count < 3 ? "b-w" : "srgb"]
        ).image()
        let whole = try Operation.call(
            "embed",
            [
                "in": .image(marked), "x": 0, "y": 0, "width": .int(width), "height": .int(height), "extend": "copy",
            ]
        ).image()
        self.init(sharing: whole)
    }

    /// That part of the picture; all of it is the picture itself.
    ///
    /// - Throws: ``VipsError`` where the part leaves the picture.
    public func cropped(_ x: Int, _ y: Int, _ width: Int, _ height: Int) throws(VipsError) -> Image {
        guard width != self.width || height != self.height || x != 0 || y != 0 else { return self }
        return try Operation.call(
            "extract_area",
            ["input": .image(self), "left": .int(x), "top": .int(y), "width": .int(width), "height": .int(height)]
        ).image()
    }

    /// The samples of one pixel.
    ///
    /// - Throws: ``VipsError`` where there is no such pixel or it cannot be computed.
    public func samples(x: Int, y: Int) throws(VipsError) -> [Double] {
        try Operation.call("getpoint", ["in": .image(self), "x": .int(x), "y": .int(y)]).doubles("out-array")
    }

    /// The average of each band, over all pixels, which are computed.
    ///
    /// - Throws: ``VipsError``, `cancelled` where `cancellation` stopped it.
    public func averages(_ cancellation: Cancellation? = nil) throws(VipsError) -> [Double] {
        let bands = self.bands
        return try running(cancellation, "stats") { () throws(VipsError) in
            let statistics = try Operation.call("stats", ["in": .image(self)]).image()
            // A row for all bands together, then one for each; the average stands in the fifth column.
            var averages: [Double] = []
            for band in 0..<bands { averages += try statistics.samples(x: 4, y: band + 1) }
            return averages
        }
    }
}
