/**
 * A CSS color as #rrggbbaa. Throws a RangeError if it is invalid.
 * @param {string} text
 */
export function color(text: string): string;
export function hslColor(hue: number, saturation: number, lightness: number): string;
