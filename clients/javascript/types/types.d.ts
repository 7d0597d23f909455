import type { Problem } from "./errors.js";
/** A JSON value. */
export declare type JSONValue = null | boolean | number | string | JSONValue[] | {
    [name: string]: JSONValue;
};
/** A name that later versions of Halcyon may extend; editors suggest those of this version. */
export declare type Open<Name extends string> = Name | (string & Record<never, never>);
/** A URL, `file:`, `s3:`, `data:` or `initials:` text, or an object. */
export declare type Source = string | {
    url: string;
    cacheKey?: string;
} | {
    base64: string;
    cacheKey?: string;
} | {
    initials: string;
    background?: string;
    foreground?: string;
} | {
    video: Source;
    seconds?: number;
} | {
    video: Source;
    contactSheet: {
        columns?: number;
        rows?: number;
        width?: number;
    };
} | {
    video: Source;
    preview: {
        frames?: number;
        duration?: number;
        width?: number;
    };
} | {
    [provider: string]: JSONValue;
};
export declare type ContentMode = "scaleToFill" | "scaleAspectFit" | "scaleAspectFill" | "redraw" | "center" | "top" | "bottom" | "left" | "right" | "topLeft" | "topRight" | "bottomLeft" | "bottomRight" | "fill" | "contain" | "cover";
export declare type ScaleOptions = "fitLeavesExcessAndFillCropsExcess" | "fitCropsExcess" | "fillLeavesExcess" | "fitCropsExcessAndFillLeavesExcess";
export declare type Format = "auto" | "best" | "jpeg" | "png" | "webp" | "avif" | "gif" | "tiff" | "jxl";
export declare type Priority = "high" | "normal" | "low";
export declare type Corner = "topLeft" | "topRight" | "bottomLeft" | "bottomRight";
export declare type Position = "center" | "top" | "bottom" | "left" | "right" | Corner;
export declare type BlendMode = "normal" | "multiply" | "screen" | "overlay" | "darken" | "lighten" | "colorDodge" | "colorBurn" | "hardLight" | "softLight" | "difference" | "exclusion" | "hue" | "saturation" | "color" | "luminosity";
/** A length in points, or in a fraction of the image's width or height. */
export declare type Radius = {
    radius: number;
} | {
    widthFraction: number;
} | {
    heightFraction: number;
};
/** A distance to the right and downward. */
export interface Offset {
    x?: number;
    y?: number;
}
/** The content of padding: a color, the pixels of the edge, the mirrored image, or the enlarged and blurred image. */
export declare type Fill = "color" | "edge" | "mirror" | "blur";
/** The shape of a mask. */
export declare type Shape = "circle" | "ellipse" | "triangle" | "diamond" | "pentagon" | "hexagon" | "octagon" | "star" | "heart";
/** How a watermark is placed: at a fraction of the image's width, or at a scale of its own size. */
export interface WatermarkOptions {
    position?: Position;
    margin?: number;
    widthFraction?: number;
    scale?: number;
    offset?: Offset;
    opacity?: number;
    mode?: BlendMode;
    tiled?: boolean;
}
/** How a text is drawn. */
export interface TextOptions {
    bold?: boolean;
    italic?: boolean;
    /** The size of the font; the largest that fits if it is absent. */
    size?: number;
    width?: number;
    height?: number;
    align?: "left" | "center" | "right";
    color?: string;
    outlineWidth?: number;
    outlineColor?: string;
    opacity?: number;
    position?: Position;
    margin?: number;
    offset?: Offset;
}
/** The detection of margins. */
export interface Trim {
    /** The difference to the background up to which a pixel belongs to the margin, 0 to 254 levels. */
    tolerance?: number;
    /** The color of the margin; that of the pixel in the top left corner if it is absent. */
    background?: string;
    /** The share of the pixels of a row or a column that may differ in a margin, 0 to 0.5. */
    fuzz?: number;
}
/** A step that an image goes through. Lengths are in points, colors are those of CSS. */
export declare type Processor = "blackWhite" | "colorControls" | "flip" | "gamma" | "normalize" | "pad" | "sharpen" | {
    roundCorner: Radius & {
        corners?: Corner[];
        background?: string;
    };
} | {
    resize: {
        width: number;
        height: number;
        mode?: "none" | "aspectFit" | "aspectFill";
    };
} | {
    crop: {
        width: number;
        height: number;
        anchor?: Point;
    };
} | {
    blur: {
        radius: number;
    };
} | {
    tint: {
        color: string;
    };
} | {
    overlay: {
        color: string;
        fraction?: number;
    } | {
        source: Source;
        opacity?: number;
        mode?: BlendMode;
    };
} | {
    blend: {
        mode: BlendMode;
        background: string;
        opacity?: number;
    };
} | {
    colorControls: {
        brightness?: number;
        contrast?: number;
        saturation?: number;
        exposure?: number;
    };
} | {
    blackWhite: Record<string, never>;
} | {
    border: {
        width: number;
        color?: string;
        corners?: Corner[];
    } & (Radius | Record<never, never>);
} | {
    downsample: {
        width: number;
        height: number;
    };
} | {
    sharpen: {
        radius?: number;
        amount?: number;
    };
} | {
    pixelate: {
        size: number;
    };
} | {
    blurFaces: {
        amount?: number;
        margin?: number;
        confidence?: number;
    };
} | {
    pixelateFaces: {
        cells?: number;
        margin?: number;
        confidence?: number;
    };
} | {
    watermark: WatermarkOptions & {
        source: Source;
    };
} | {
    rotate: {
        degrees: number;
        background?: string;
    };
} | {
    flip: {
        direction?: "horizontal" | "vertical" | "both";
    };
} | {
    pad: {
        all?: number;
        top?: number;
        right?: number;
        bottom?: number;
        left?: number;
        fill?: Fill;
        color?: string;
    };
} | {
    text: TextOptions & {
        text: string;
        font: string;
    };
} | {
    mask: {
        shape: Shape;
    } | {
        source: Source;
    };
} | {
    hue: {
        degrees: number;
    };
} | {
    gamma: {
        gamma?: number;
    };
} | {
    normalize: {
        lower?: number;
        upper?: number;
    };
} | {
    duotone: {
        dark: string;
        light: string;
    };
};
/** A processor that the cluster has registered itself. */
export interface CustomProcessor {
    [name: string]: JSONValue;
}
/** A point in fractions of the image, 0 to 1. */
export interface Point {
    x: number;
    y: number;
}
/** The part that is kept when an image is cropped. */
export declare type Place = "center" | "attention" | "entropy" | Point;
/** The part with what a detector finds with at least a confidence from 0 to 1, or else `fallback`. */
export interface Detection {
    detect: "faces" | "objects";
    fallback?: Place;
    confidence?: number;
}
/** A face in an image: its rectangle in pixels, and the confidence of the detector, 0 to 1. */
export interface Face {
    x: number;
    y: number;
    width: number;
    height: number;
    confidence: number;
}
/** The part of the source that is used, in fractions of it or in pixels. */
export interface CropRect {
    x: number;
    y: number;
    width: number;
    height: number;
    unit?: "fractions" | "pixels";
}
/** The fields that jobs and their variants have in common. */
export interface Picture {
    width?: number;
    height?: number;
    screenScale?: number;
    contentMode?: ContentMode;
    scaleOptions?: ScaleOptions;
    position?: Position;
    cropRect?: CropRect;
    trim?: boolean | Trim;
    gravity?: Place | "faces" | "objects" | Detection;
    sizeForDisplay?: boolean;
    sizer?: "natural" | {
        aspectScaleDownByWidth: number;
    } | {
        aspectScaleDownByHeight: number;
    };
    upscale?: boolean;
    interpolationQuality?: "none" | "low" | "medium" | "high" | "default";
    linearLight?: boolean;
    background?: string;
    before?: (Processor | CustomProcessor)[];
    processors?: (Processor | CustomProcessor)[];
    format?: Format;
    /** 1 to 100, or the similarity (SSIM) that the lowest sufficient quality is searched for. */
    quality?: number | {
        target: number;
    };
    maximumBytes?: number;
    allowResize?: boolean;
    nearLossless?: boolean;
    chromaSubsampling?: "auto" | "4:4:4" | "4:2:0";
    bitDepth?: 8 | 12 | 16;
    quantize?: boolean | 2 | 4 | 16 | 256 | {
        colors?: 2 | 4 | 16 | 256;
        dither?: number;
    };
    profile?: "srgb" | "p3";
    lossless?: boolean;
    effort?: number;
    progressive?: boolean;
    stripMetadata?: boolean;
    keepProfile?: boolean;
    /** The page of a PDF or TIFF, or the first frame of an animation, from 1. */
    page?: number;
    frames?: number;
    tolerance?: "strict" | "truncated";
    blurhash?: boolean;
    dominantColor?: boolean;
    palette?: boolean;
    thumbhash?: boolean;
    phash?: boolean;
    /** The places of faces. */
    faces?: boolean;
    /** Facts about the source instead of an image. */
    info?: boolean | {
        location?: boolean;
    };
}
/** One of several images of a job. Fields that it does not set are those of the job. */
export interface Output extends Picture {
    name?: string;
}
/** The fields that the jobs of a batch or of a preset have in common: a job without a source. */
export interface Template extends Picture {
    id?: string;
    alternatives?: Source[];
    fallback?: Source | false;
    variants?: Output[];
    partial?: boolean;
    maxAge?: number;
    cache?: {
        memory?: boolean;
        store?: boolean | "required";
        source?: boolean;
        reload?: boolean;
        onlyIfCached?: boolean;
    };
    tenant?: string;
    headers?: Record<string, string>;
    tags?: string[];
    slot?: string;
    generation?: number;
    /** Where the images go: by reference, in the event, or uploaded to a URL, a template, or a URL for each variant. */
    delivery?: "reference" | "inline" | {
        put: string | Record<string, string>;
    };
    priority?: Priority;
    prefetch?: boolean;
    refresh?: number | "beforeExpiry";
    /** Seconds from now, or a time. */
    notBefore?: number | string | Date;
    /** Seconds from now, or a time. */
    deadline?: number | string | Date;
    metadata?: JSONValue;
    placeholder?: JSONValue;
    altText?: JSONValue;
    preset?: string | {
        name: string;
        version?: number;
    };
    /** The batch of a job that is written to Kafka, and the index of the job there. */
    batch?: string | {
        id: string;
        index?: number;
    };
    webhook?: string;
}
/** A job: fetches, sizes, processes and encodes one image. docs/jobs.md describes the fields. */
export interface Job extends Template {
    source: Source;
}
/** A failure code. */
export declare type Code = Open<"invalid_job" | "unsupported_source" | "blocked_address" | "not_found" | "gone" | "forbidden" | "http_error" | "dns_error" | "connect_error" | "origin_unavailable" | "tls_error" | "timeout" | "too_many_redirects" | "too_large" | "too_many_pixels" | "unsupported_format" | "corrupt_image" | "expired" | "provider_error" | "poison" | "internal">;
/** The job of an event, with the values that the job gave to be returned. */
export interface JobReference {
    id: string;
    metadata?: JSONValue;
    placeholder?: JSONValue;
    altText?: JSONValue;
    preset?: {
        name: string;
        version: number;
    };
    batch?: {
        id: string;
        index?: number;
    };
}
/** The metadata of a camera. */
export interface Exif {
    make?: string;
    model?: string;
    lensMake?: string;
    lensModel?: string;
    software?: string;
    artist?: string;
    copyright?: string;
    /** The local time of the exposure, with the offset from UTC if it is known: 2026-05-01T12:34:56+02:00. */
    dateTimeOriginal?: string;
    /** Seconds. */
    exposureTime?: number;
    fNumber?: number;
    iso?: number;
    /** EV. */
    exposureBias?: number;
    /** Millimeters. */
    focalLength?: number;
    /** Millimeters. */
    focalLengthIn35mmFilm?: number;
    /** Whether the flash fired. */
    flash?: boolean;
}
/** Facts about a source (docs/info.md). */
export interface SourceInfo {
    format: string;
    mediaType: string;
    bytes: number;
    /** The size in pixels, after auto-rotation. */
    width: number;
    height: number;
    orientation: number;
    frames?: number;
    /** Milliseconds. */
    duration?: number;
    loop?: number;
    pages?: number;
    colorSpace: Open<"rgb" | "gray" | "cmyk" | "other">;
    bitsPerSample?: number;
    alpha: boolean;
    profile?: {
        name?: string;
        colorSpace?: string;
    };
    truncated?: boolean;
    exif?: Exif;
    /** The video that a frame is from; the duration is in milliseconds. */
    video?: {
        codec: string;
        duration?: number;
    };
    /** Degrees north and east of WGS 84, and meters above sea level. */
    location?: {
        latitude: number;
        longitude: number;
        altitude?: number;
    };
    blurhash?: string;
    dominantColor?: string;
    palette?: string[];
    thumbhash?: string;
    phash?: string;
    /** The faces, the most confident first. */
    faces?: Face[];
}
/** An image that a job has made. */
export interface Variant {
    /** The key of the result. */
    key: string;
    width: number;
    height: number;
    format: Open<Exclude<Format, "auto" | "best"> | "json">;
    /** The length of the file. */
    bytes: number;
    sha256: string;
    name?: string;
    frames?: number;
    blurhash?: string;
    dominantColor?: string;
    /** The part of the upright source that remained when margins were removed, in pixels. */
    trim?: {
        x: number;
        y: number;
        width: number;
        height: number;
    };
    palette?: string[];
    /** The ThumbHash in base64. */
    thumbhash?: string;
    phash?: string;
    /** The faces, the most confident first. */
    faces?: Face[];
    /** The facts about the source, if the job asked for them. */
    info?: SourceInfo;
    /** The outcome of the search for the size or the quality; `encodings` is 0 if the file of the source was used. */
    encoding?: {
        quality?: number;
        colors?: number;
        similarity?: number;
        encodings: number;
    };
    expiresAt?: string;
    /** The public URL of the file in the result store. */
    url?: string;
    /** The address to which the file was uploaded. */
    put?: string;
    /** The file in base64, if it is in the event. */
    data?: string;
}
export interface Started {
    job: JobReference;
}
export interface Progress {
    job: JobReference;
    stage: Open<"fetch">;
    received: number;
    total?: number;
    attempt: number;
}
/** All images of a job are available. */
export interface Ready {
    job: JobReference;
    key?: string;
    variants: Variant[];
    expiresAt?: string;
    origin: Open<"memory" | "store" | "source-cache" | "network" | "coalesced">;
    attempts?: number;
    /** Milliseconds by stage. */
    timings: Record<string, number>;
    source?: {
        status?: number;
        etag?: string;
        bytes: number;
        format: string;
        width: number;
        height: number;
        truncated?: boolean;
    };
    failures?: {
        variant: number;
        code: Code;
        message: string;
    }[];
    alternative?: string;
    fallback?: {
        code: Code;
        message: string;
        retryable: boolean;
    };
    warnings?: string[];
}
/** A job failed and has no images. */
export interface Failed {
    job: JobReference;
    code: Code;
    message: string;
    retryable: boolean;
    attempts: number;
    timings: Record<string, number>;
}
export interface Cancelled {
    job: JobReference;
}
export interface Superseded {
    job: JobReference;
    supersededBy: number;
}
export interface Purged {
    source?: string;
    tag?: string;
    key?: string;
    tenant?: string;
    count: number;
    cacheTags?: string[];
}
/** The state of a batch. */
export interface Batch {
    id: string;
    state: Open<"open" | "listing" | "running" | "cancelling" | "completed">;
    tenant?: string;
    createdAt: string;
    cancelledAt?: string;
    completedAt?: string;
    prefix?: string;
    preset?: string;
    submitted?: number;
    error?: {
        code: Open<"not_found" | "forbidden" | "too_large" | "invalid_job">;
        message: string;
    };
    /** The number of jobs; absent while jobs may be added. */
    total?: number;
    ended: number;
    counts: {
        ready: number;
        failed: number;
        cancelled: number;
        superseded: number;
    };
    failures?: string;
}
interface Envelope<Type extends string, Data> {
    specversion: "1.0";
    id: string;
    source: "/halcyon";
    type: Type;
    subject?: string;
    time: string;
    datacontenttype: "application/json";
    traceparent?: string;
    data: Data;
}
/** A CloudEvent of Halcyon: `type` tells what `data` is. Later versions may add types. */
export declare type HalcyonEvent = Envelope<"halcyon.image.started", Started> | Envelope<"halcyon.image.progress", Progress> | Envelope<"halcyon.image.ready", Ready> | Envelope<"halcyon.image.failed", Failed> | Envelope<"halcyon.image.cancelled", Cancelled> | Envelope<"halcyon.image.superseded", Superseded> | Envelope<"halcyon.image.purged", Purged> | Envelope<"halcyon.batch.progress", {
    batch: Batch;
}> | Envelope<"halcyon.batch.completed", {
    batch: Batch;
}>;
/** The short name of a type of events. */
export declare type EventName = Open<"started" | "progress" | "ready" | "failed" | "cancelled" | "superseded" | "purged" | "batch.progress" | "batch.completed">;
/** An item of a subscription: an event, or the reason of a gap if the broker has deleted events before the next one. */
export declare type Message = {
    event: HalcyonEvent;
    gap?: undefined;
    cursor: string;
} | {
    event?: undefined;
    gap: string;
    cursor: string;
};
/** A job that a gateway has accepted and written to the brokers. */
export interface AcceptedJob {
    id: string;
    lane: Open<Priority>;
    keys: string[];
    unknownFields: string[];
}
/** The state of a job: `accepted`, or the type of its last event. */
export interface JobState {
    id: string;
    state: Open<"accepted" | "started" | "ready" | "failed" | "cancelled" | "superseded">;
    event?: HalcyonEvent;
}
/** An image that a job has made: the file, its properties, and the data of the event. */
export interface Image {
    blob: Blob;
    variant: Variant;
    ready: Ready;
}
/** The jobs of a batch that were accepted. If a worker lists the jobs, there are `prefix` or `preset` in place of jobs. */
export interface BatchSubmission {
    id: string;
    accepted: number;
    rejected: number;
    /** The number of failed jobs that Kafka has deleted, of a retry. */
    missing: number;
    /** The problems of invalid jobs (the first 100), by their line or position, starting at 1. */
    problems: {
        line: number;
        problem: Problem;
    }[];
    prefix?: string;
    preset?: string;
}
/** A failed job of a batch. */
export interface BatchFailure {
    job: string;
    index?: number;
    code: Code;
    message: string;
    record: string;
}
/** A preset: the fields of its jobs, and those that jobs may set themselves. */
export interface Preset {
    name: string;
    version: number;
    job: Template;
    overridable: string[];
    origin: Open<"settings" | "registered">;
}
/** The options of a client. Times are seconds. */
export interface Options {
    /** The API key. It is sent to the gateway only. */
    key?: string;
    /** The time for which failed requests are repeated (30). */
    retryTimeout?: number;
    /** The time to wait for the end of a job or batch (300). */
    jobTimeout?: number;
    /** The time without data after which a connection counts as lost (60). */
    readTimeout?: number;
    /** The size limit of an image or event in bytes (64 MiB). */
    maximumBytes?: number;
}
/** Options of requests. */
export interface RequestOptions {
    /** Ends the call. */
    signal?: AbortSignal;
}
/** Options of calls that wait. */
export interface WaitOptions extends RequestOptions {
    /** The time to wait in seconds (`jobTimeout`). */
    timeout?: number;
}
/** Parameters of a new batch. Fields of jobs that have their own are not changed. */
export interface BatchOptions extends RequestOptions {
    /** The id of the batch; a random one by default. */
    id?: string;
    tenant?: string;
    priority?: Priority;
    deadline?: number;
    /** A webhook that is notified of the completion of the batch. */
    webhook?: string;
}
/** Parameters of a batch that is sent in parts. */
export interface PartOptions extends BatchOptions {
    /** The index of the first job: the number of jobs in earlier parts (0). */
    first?: number;
    /** Whether these are the last jobs (true). */
    close?: boolean;
}
/** Filters of events. An event must match all of them. */
export interface EventFilters {
    types?: EventName[];
    jobs?: string[];
    batches?: string[];
    sources?: string[];
}
export {};
