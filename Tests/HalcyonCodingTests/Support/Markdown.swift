/// A page of docs/, parsed for code blocks and tables.
struct Markdown {
    private let lines: [Substring]

    init(_ text: String) {
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    /// The contents of the code blocks of a language.
    func blocks(of language: String) -> [String] {
        var blocks: [String] = []
        var block: (language: Substring, lines: [Substring])?
        for line in lines {
            if line.hasPrefix("```") {
                if let block, block.language == language { blocks.append(block.lines.joined(separator: "\n")) }
                block = block == nil ? (line.dropFirst(3), []) : nil
            } else {
                block?.lines.append(line)
            }
        }
        return blocks
    }

    /// The rows, cell by cell, of all tables whose columns have these names.
    func rows(under header: [String]) -> [[String]] {
        var rows: [[String]] = []
        var isInside = false
        for line in lines {
            let cells = Self.cells(of: line)
            if cells == header {
                isInside = true
            } else if cells.isEmpty {
                isInside = false
            } else if isInside, !line.hasPrefix("|-") {
                rows.append(cells)
            }
        }
        return rows
    }

    /// The code spans of a cell.
    static func code(in cell: String) -> [String] {
        cell.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            .filter { !$0.offset.isMultiple(of: 2) }.map { String($0.element) }
    }

    private static func cells(of line: Substring) -> [String] {
        guard line.hasPrefix("|") else { return [] }
        return line.dropFirst(2).dropLast(2).split(separator: " | ").map(String.init)
    }
}
