// SHA-256 (FIPS 180-4) and HMAC (RFC 2104). The Web Crypto API is asynchronous, and does not exist on pages without HTTPS.

const fractions = (/** @type {number} */ root, /** @type {number} */ count) => {
  const values = [];
  for (let n = 2; values.length < count; n++) {
    let isPrime = true;
    for (let d = 2; d * d <= n; d++) if (n % d === 0) isPrime = false;
    if (isPrime) values.push(((n ** (1 / root)) % 1) * 2 ** 32 | 0);
  }
  return values;
};
const K = fractions(3, 64);
const INITIAL = fractions(2, 8);

/**
 * The SHA-256 of bytes.
 * @param {Uint8Array} bytes
 */
export function sha256(bytes) {
  const blocks = new Uint8Array(((bytes.length + 72) >> 6) << 6);
  blocks.set(bytes);
  blocks[bytes.length] = 0x80;
  const view = new DataView(blocks.buffer);
  view.setUint32(blocks.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(blocks.length - 4, bytes.length << 3);
  const state = Int32Array.from(INITIAL);
  const w = new Int32Array(64);
  const rotate = (/** @type {number} */ x, /** @type {number} */ n) => (x >>> n) | (x << (32 - n));
  for (let start = 0; start < blocks.length; start += 64) {
    for (let i = 0; i < 64; i++) {
      if (i < 16) {
        w[i] = view.getInt32(start + 4 * i);
        continue;
      }
      const [a, b] = [w[i - 15], w[i - 2]];
      w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3)) + w[i - 7] + (rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10));
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const one = (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
      const two = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((value, i) => (state[i] += value));
  }
  const digest = new Uint8Array(32);
  state.forEach((value, i) => new DataView(digest.buffer).setInt32(4 * i, value));
  return digest;
}

/**
 * The HMAC-SHA256 of bytes.
 * @param {Uint8Array} key
 * @param {Uint8Array} bytes
 */
export function hmac(key, bytes) {
  const block = new Uint8Array(64);
  block.set(key.length > 64 ? sha256(key) : key);
  const padded = (/** @type {number} */ pad, /** @type {Uint8Array} */ rest) => {
    const joined = new Uint8Array(64 + rest.length);
    joined.set(block.map((byte) => byte ^ pad));
    joined.set(rest, 64);
    return sha256(joined);
  };
  return padded(0x5c, padded(0x36, bytes));
}

/** @param {Uint8Array} bytes */
export const hexadecimal = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
