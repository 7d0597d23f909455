/// The proleptic Gregorian calendar in days. Years are counted from March, so that the leap day comes last.
enum Calendar {
    /// Whether the date exists.
    static func has(_ day: Int, _ month: Int, _ year: Int) -> Bool {
        guard (1...12).contains(month) else { return false }
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return (1...[31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]).contains(day)
    }

    /// Days from 1970-01-01 to a date.
    static func daysSince1970(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let years = month > 2 ? year : year - 1
        let monthsSinceMarch = (month + 9) % 12
        let daysBefore = years * 365 + years / 4 - years / 100 + years / 400
        return daysBefore + (monthsSinceMarch * 153 + 2) / 5 + day - 719_469
    }

    /// The date that many days after 1970-01-01, in the years 1 to 9999.
    static func date(daysSince1970 days: Int) -> (year: Int, month: Int, day: Int) {
        var day = days + 719_468  // days since 0000-03-01
        let era = day / 146_097
        day %= 146_097
        let yearOfEra = (day - day / 1460 + day / 36_524 - day / 146_096) / 365
        day -= yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100
        let month = (day * 5 + 2) / 153
        day -= (month * 153 + 2) / 5
        return (era * 400 + yearOfEra + (month >= 10 ? 1 : 0), month < 10 ? month + 3 : month - 9, day + 1)
    }
}
