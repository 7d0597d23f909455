package org.example.halcyon;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;

/** Numbers as keys know them: to six decimals (docs/keys.md, Numbers). */
final class Numbers {
    private Numbers() {}

    /** The nearest whole number; of two that are as near, the one further from zero. */
    static double halfAway(double number) {
        double magnitude = Math.abs(number), whole = Math.floor(magnitude);
        return Math.copySign(magnitude - whole >= 0.5 ? whole + 1 : whole, number);
    }

    /** To six decimals. */
    static double rounded(double number) {
        return halfAway(number * 1_000_000) / 1_000_000;
    }

    /** A length, to six decimals: a number above zero stays above zero. */
    static double length(double number) {
        return Math.max(rounded(number), 0.000001);
    }

    /** To six decimals, without trailing zeros and without an exponent. */
    static String text(double number) {
        return plain(BigDecimal.valueOf((long) halfAway(number * 1_000_000), 6));
    }

    /** The whole part. */
    static String whole(double number) {
        return Long.toString((long) number);
    }

    /** A length in points as whole pixels. */
    static String wholePixels(double points, double scale, double least) {
        return whole(halfAway(rounded(Math.max(least, halfAway(rounded(points))) * scale)));
    }

    /** The shortest decimal that reads back as the same double, without an exponent. */
    static String exact(double number) {
        return plain(shortest(number));
    }

    /** Like {@link #exact}, but with an exponent for large and small numbers, as Swift writes them. */
    static String shortestText(double number) {
        double magnitude = Math.abs(number);
        if (number == Math.rint(number) && magnitude < 1L << 53 || magnitude >= 1e-4 && magnitude < 1e16) return exact(number);
        BigDecimal shortest = shortest(number).stripTrailingZeros();
        String digits = shortest.unscaledValue().abs().toString();
        int exponent = shortest.precision() - shortest.scale() - 1;
        return (number < 0 ? "-" : "") + digits.charAt(0) + (digits.length() > 1 ? "." + digits.substring(1) : "")
            + String.format("e%s%02d", exponent < 0 ? "-" : "+", Math.abs(exponent));
    }

    private static String plain(BigDecimal number) {
        return number.signum() == 0 ? "0" : number.stripTrailingZeros().toPlainString();
    }

    /** Double.toString of Java 17 does not always find the shortest one. */
    private static BigDecimal shortest(double number) {
        BigDecimal exact = new BigDecimal(number);
        for (int precision = 1; precision < 17; precision++) {
            BigDecimal rounded = exact.round(new MathContext(precision, RoundingMode.HALF_EVEN));
            if (rounded.doubleValue() == number) return rounded;
        }
        return exact.round(new MathContext(17, RoundingMode.HALF_EVEN));
    }
}
