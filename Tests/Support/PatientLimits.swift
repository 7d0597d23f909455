import HTTPServer

extension HTTPServer.Limits {
    /// The defaults, but for the times: beside other tests a client or a handler may be late by many seconds. Tests of time limits set their own.
    public static var patient: HTTPServer.Limits {
        var limits = HTTPServer.Limits()
        (limits.headTime, limits.idleTime) = (.seconds(600), .seconds(600))
        (limits.requestTime, limits.stallTime) = (.seconds(600), .seconds(600))
        return limits
    }
}

extension HTTPServer.Settings {
    /// The defaults, with ``HTTPServer/HTTPServer/Limits/patient`` limits.
    public static var patient: HTTPServer.Settings {
        var settings = HTTPServer.Settings()
        settings.limits = .patient
        return settings
    }
}
