/**
 * @typedef {import("./types.js").Job} Job
 * @typedef {{lifetime?: number, expires?: number}} Validity the seconds for which a URL is valid, or the Unix time until which it is
 */
/**
 * The path and query of /v1/render that returns the image of a job. A preset is part of the path.
 * @param {Job} job
 */
export function renderTarget(job: Job): string;
/**
 * The path and query of /v1/info that returns the facts about the source of a job.
 * @param {Job} job
 */
export function infoTarget({ info, ...fields }: Job): string;
/**
 * The path and query of the event stream with these filters.
 * @param {import("./types.js").EventFilters} filters
 */
export function eventsTarget({ types, jobs, batches, sources }?: import("./types.js").EventFilters): string;
export function imageTarget(key: string): string;
/**
 * Signs URLs with a secret of `gateway.urlKeys`. A signed URL gives access to whoever has it, for use on web pages. Keep the secret on servers.
 *
 *     const signer = new URLSigner("https://images.example.org", "1", secret);
 *     const url = signer.render({ source: "https://example.org/cat.jpg", width: 400 }, { lifetime: 3600 });
 */
export class URLSigner {
    /**
     * @param {string} url the URL of the gateway
     * @param {string} keyID
     * @param {string} secret
     */
    constructor(url: string, keyID: string, secret: string);
    url: string;
    keyID: string;
    /**
     * The signed URL of a target, such as `/v1/render?…`. Gateways require an expiry, unless `gateway.requiresExpiry` is false.
     * @param {string} target
     * @param {Validity} validity
     */
    sign(target: string, { lifetime, expires }?: Validity): string;
    /**
     * The signed URL of the image of a job, which is rendered when it is first requested.
     * @param {Job} job
     * @param {Validity} [validity]
     */
    render(job: Job, validity?: Validity | undefined): string;
    /**
     * The signed URL of the facts about the source of a job.
     * @param {Job} job
     * @param {Validity} [validity]
     */
    info(job: Job, validity?: Validity | undefined): string;
    /**
     * The signed URL of a stored result.
     * @param {string} key
     * @param {Validity} [validity]
     */
    image(key: string, validity?: Validity | undefined): string;
    /**
     * The signed URL of the event stream, for `EventSource`.
     * @param {import("./types.js").EventFilters} [filters]
     * @param {Validity} [validity]
     */
    events(filters?: import("./types.js").EventFilters | undefined, validity?: Validity | undefined): string;
    #private;
}
export type Job = import("./types.js").Job;
/**
 * the seconds for which a URL is valid, or the Unix time until which it is
 */
export type Validity = {
    lifetime?: number;
    expires?: number;
};
