import HTTPServer
import Redis

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

extension RedisSettings {
    /// Returns the default settings with long timeouts, for busy machines.
    /// - Parameter outageGrace: The time that commands wait for a connection that was lost. Short in tests that stop
    ///   the server.
    public static func patient(outageGrace: Duration = .patience) -> RedisSettings {
        var settings = RedisSettings()
        (settings.commandTimeout, settings.connectTimeout) = (.patience, .patience)
        settings.outageGrace = outageGrace
        return settings
    }
}
