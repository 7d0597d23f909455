import Glibc

/// The transfer curve of sRGB (IEC 61966-2-1), from 0 to 1 both ways.
enum SRGB {
    /// The light that an encoded sample stands for.
    static func light(_ signal: Double) -> Double {
        signal <= 0.04045 ? signal / 12.92 : pow((signal + 0.055) / 1.055, 2.4)
    }

    /// The sample that stands for this light.
    static func signal(_ light: Double) -> Double {
        light <= 0.003_130_8 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
    }
}
