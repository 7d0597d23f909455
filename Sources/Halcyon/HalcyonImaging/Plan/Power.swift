import Glibc

/// `base` to the power of `exponent`, 0 for a negative base.
func power(_ base: Double, _ exponent: Double) -> Double { base <= 0 ? 0 : pow(base, exponent) }
