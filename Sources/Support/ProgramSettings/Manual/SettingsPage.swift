extension SettingsSchema {
    /// Returns a page in section 5 of the manual that lists all settings with their values, defaults and variables.
    /// - Parameters:
    ///   - name: The name of the settings file, such as `prog.yaml`.
    ///   - summary: A one-sentence summary of the page.
    ///   - discussion: Paragraphs separated by empty lines, with text in backticks set in bold.
    ///   - example: A settings file.
    ///   - related: Other pages, such as `prog(1)`.
    public func manualPage(
        _ name: String, summary: String, discussion: String, example: String, related: [String],
        _ details: ManualDetails
    ) -> ManualPage {
        var roff = Roff(name: name, section: 5, details)
        roff.section("NAME")
        roff.line("\(escaped(name)) \\- \(escaped(nameSummary(summary)))")
        roff.section("DESCRIPTION")
        roff.prose(discussion)
        roff.section("SETTINGS")
        var part = Substring()
        for setting in settings {
            let first = setting.name.prefix { $0 != "." }
            if first != part { roff.subsection(String(first)) }
            part = first
            let text = setting.isSecret ? stars(for: setting.text(defaults)) : setting.text(defaults)
            let variables = ([variable(for: setting.name)] + setting.fallbacks).map { "`\($0)`" }
            roff.item(
                "\\fB\(escaped(setting.name))\\fP",
                [
                    setting.explanation, "Value: \(setting.expectation)", text.isEmpty ? "" : "Default: `\(text)`",
                    "Variable: \(variables.joined(separator: ", else "))",
                ].filter { !$0.isEmpty }.joined(separator: "\n"))
        }
        if !maps.isEmpty {
            roff.section("MAPPINGS")
            roff.prose("Each of these settings is a mapping with names of your choice.")
            for map in maps {
                roff.item(
                    "\\fB\(escaped(map.name))\\fP",
                    "\(map.explanation)\nVariables: `\(prefix)\(map.variables)` and the name")
            }
        }
        roff.section("EXAMPLES")
        roff.line(".nf")
        for line in example.split(separator: "\n", omittingEmptySubsequences: false) { roff.line(escaped(line)) }
        roff.line(".fi")
        roff.seeAlso(related)
        return ManualPage(name: name, section: 5, text: roff.text)
    }
}
