/**
 * The SHA-256 of bytes.
 * @param {Uint8Array} bytes
 */
export function sha256(bytes: Uint8Array): Uint8Array;
/**
 * The HMAC-SHA256 of bytes.
 * @param {Uint8Array} key
 * @param {Uint8Array} bytes
 */
export function hmac(key: Uint8Array, bytes: Uint8Array): Uint8Array;
export function hexadecimal(bytes: Uint8Array): string;
