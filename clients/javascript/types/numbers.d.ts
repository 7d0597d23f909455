/**
 * The nearest whole number; of two that are as near, the one further from zero.
 * @param {number} number
 */
export function halfAway(number: number): number;
/**
 * A number to six decimals, without trailing zeros and without exponent.
 * @param {number} number
 */
export function text(number: number): string;
/**
 * The shortest decimal that reads back as the same double, without exponent.
 * @param {number} number
 */
export function exact(number: number): string;
export function rounded(number: number): number;
export function points(number: number): number;
export function wholePixels(number: number, scale: number, least?: number | undefined): number;
