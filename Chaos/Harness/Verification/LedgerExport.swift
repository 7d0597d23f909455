import Glibc

/// Writes the ledger to a file for analysis. Each record, event or fault is a line of tab-separated fields.
struct LedgerExport {
    let ledger: Ledger

    /// Writes lines `sent PLACE ID SOURCE SECONDS`, `told EVENT END SECONDS ORIGIN` and `fault KIND WHAT BEGIN END`.
    func write(to path: String) {
        let lines =
            ledger.sent.map { "sent\t\($0.place)\t\($0.id)\t\($0.source ?? "-")\t\($0.at)" }
            + ledger.ends.map { "told\t\($0.id)\t\($0.end)\t\($0.at)\t\($0.origin ?? "-")" }
            + ledger.faults.map { "fault\t\($0.kind.rawValue)\t\($0.what)\t\($0.begin)\t\($0.end)" }
        guard let file = fopen(path, "w") else { return say("cannot write the ledger to \(path): errno \(errno)") }
        defer { fclose(file) }
        for line in lines { fputs(line + "\n", file) }
    }
}
