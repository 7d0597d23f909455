// Numbers as result keys write them: to six decimals (docs/keys.md, Numbers).

/**
 * The nearest whole number; of two that are as near, the one further from zero.
 * @param {number} number
 */
export function halfAway(number) {
  const whole = Math.floor(Math.abs(number));
  return Math.sign(number) * (Math.abs(number) - whole >= 0.5 ? whole + 1 : whole) || 0;
}

/**
 * A number to six decimals.
 * @param {number} number
 */
export const rounded = (number) => halfAway(number * 1_000_000) / 1_000_000;

/**
 * A number to six decimals, without trailing zeros and without exponent.
 * @param {number} number
 */
export function text(number) {
  const millionths = BigInt(halfAway(number * 1_000_000));
  const size = millionths < 0n ? -millionths : millionths;
  const fraction = (size % 1_000_000n).toString().padStart(6, "0").replace(/0+$/, "");
  return `${millionths < 0n ? "-" : ""}${size / 1_000_000n}${fraction && `.${fraction}`}`;
}

/**
 * The shortest decimal that reads back as the same double, without exponent.
 * @param {number} number
 */
export function exact(number) {
  const [digits, exponent] = String(number).split("e-");
  if (exponent === undefined) return String(number + 0);
  const [sign, whole, fraction = ""] = /** @type {RegExpExecArray} */ (/^(-?)(\d)(?:\.(\d+))?$/.exec(digits)).slice(1);
  return `${sign}0.${"0".repeat(Number(exponent) - 1)}${whole}${fraction}`;
}

/**
 * A length: a number above zero stays above zero.
 * @param {number} number
 */
export const points = (number) => Math.max(rounded(number), 0.000001);

/**
 * A length in points as whole pixels.
 * @param {number} number
 * @param {number} scale
 * @param {number} [least]
 */
export const wholePixels = (number, scale, least = 1) => halfAway(rounded(Math.max(least, halfAway(rounded(number))) * scale));
