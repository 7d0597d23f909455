import HTTPServer

extension HTTPServer.Limits {
    /// The default limits with timeouts of 600 s. When tests run in parallel, a client or a handler may be late by many
    /// seconds. Tests of timeouts set their own.
    public static var patient: HTTPServer.Limits {
        var limits = HTTPServer.Limits()
        (limits.headTime, limits.idleTime) = (.seconds(600), .seconds(600))
        (limits.requestTime, limits.stallTime) = (.seconds(600), .seconds(600))
        return limits
    }
}

extension HTTPServer.Settings {
    /// The default settings with ``HTTPServer/HTTPServer/Limits/patient`` limits.
    public static var patient: HTTPServer.Settings {
        var settings = HTTPServer.Settings()
        settings.limits = .patient
        return settings
    }
}
