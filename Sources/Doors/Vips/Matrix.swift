import CVips

extension Image {
    /// Numbers in rows, as `recomb` and `conv` take them.
    ///
    /// - Parameters:
    ///   - rows: at least one, all of one length above 0.
    ///   - scale: what `conv` divides its sums by.
    /// - Throws: ``VipsError`` of code `misuse` for rows of different lengths, or none.
    public convenience init(matrix rows: [[Double]], scale: Double = 1) throws(VipsError) {
        VipsLibrary.start()
        let width = rows.first?.count ?? 0
        guard width > 0, rows.allSatisfy({ $0.count == width }) else {
            throw VipsError(.misuse, "image_new_matrix", "a matrix has rows of one length")
        }
        let numbers = rows.flatMap { $0 }
        guard
            let handle = vips_image_new_matrix_from_array(
                Int32(width), Int32(rows.count), numbers, Int32(numbers.count))
        else { throw .last(in: "image_new_matrix") }
        vips_image_set_double(handle, "scale", scale)
        self.init(owning: handle)
    }
}
