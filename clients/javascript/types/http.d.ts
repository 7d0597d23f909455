/**
 * Waits for a time in milliseconds. Rejects at once when the signal is aborted.
 * @param {number} time
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export function pause(time: number, signal?: AbortSignal | undefined): Promise<void>;
/**
 * @typedef {object} Request
 * @property {string} [method]
 * @property {string | Uint8Array} [body]
 * @property {string} [type] the media type of the body
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 * @property {number} [wait] the seconds for which the server may delay the response
 * @property {number} [until] the time in milliseconds since 1970 at which retries end
 * @property {boolean} [redirects] whether a redirect to another server is followed, without the key
 *
 * @typedef {{name: string, data: string, lastID: string}} Item a complete event. `name` is `id` if only the position changed, and `retry` for the
 *   reconnection time in milliseconds
 */
/** Sends requests to a gateway. */
export class Transport {
    /**
     * @param {string} url
     * @param {Required<Omit<import("./types.js").Options, "key">> & {key?: string}} options
     */
    constructor(url: string, options: Required<Omit<import("./types.js").Options, "key">> & {
        key?: string;
    });
    url: string;
    options: Required<Omit<import("./types.js").Options, "key">> & {
        key?: string | undefined;
    };
    /**
     * Sends a request until it succeeds, for up to `retryTimeout` after the first failure.
     * @param {string} target a path of the gateway, or an absolute URL of another server, which does not receive the key
     * @param {Request} [request]
     * @returns {Promise<Blob>} the body of the response
     */
    send(target: string, request?: Request | undefined): Promise<Blob>;
    /**
     * Sends a request once and yields the parts of the response. Closes the connection when the iteration ends. Unread parts stay in the connection.
     * @param {string} target
     * @param {Request} request
     * @param {(headers: Headers) => void} [begin] receives the headers of a successful response
     * @returns {AsyncGenerator<Uint8Array, void, undefined>}
     */
    open(target: string, { method, body, type, headers, signal, wait, redirects }: Request, begin?: ((headers: Headers) => void) | undefined): AsyncGenerator<Uint8Array, void, undefined>;
    /**
     * Yields the complete events of one connection (HTML Living Standard, 9.2.6).
     * @param {string} target
     * @param {string} lastID
     * @param {AbortSignal | undefined} signal
     * @returns {AsyncGenerator<Item, void, undefined>}
     */
    stream(target: string, lastID: string, signal: AbortSignal | undefined): AsyncGenerator<Item, void, undefined>;
    #private;
}
export function jittered(base: number, failures: number, longest: number): number;
export type Request = {
    method?: string | undefined;
    body?: string | Uint8Array | undefined;
    /**
     * the media type of the body
     */
    type?: string | undefined;
    headers?: Record<string, string> | undefined;
    signal?: AbortSignal | undefined;
    /**
     * the seconds for which the server may delay the response
     */
    wait?: number | undefined;
    /**
     * the time in milliseconds since 1970 at which retries end
     */
    until?: number | undefined;
    /**
     * whether a redirect to another server is followed, without the key
     */
    redirects?: boolean | undefined;
};
/**
 * a complete event. `name` is `id` if only the position changed, and `retry` for the
 *  reconnection time in milliseconds
 */
export type Item = {
    name: string;
    data: string;
    lastID: string;
};
