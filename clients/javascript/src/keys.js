// Keys of results, computed from jobs (docs/keys.md): a program that knows the job can read the result without a request to Halcyon.
import { color, hslColor } from "./colors.js";
import { exact, halfAway, points, rounded, text, wholePixels } from "./numbers.js";
import { hexadecimal, sha256 } from "./sha256.js";

/**
 * @typedef {import("./types.js").Job} Job
 * @typedef {import("./types.js").Template} Template
 * @typedef {Record<string, any>} Fields
 */

/** @type {Record<string, string>} */
const MODES = { fill: "scaleToFill", contain: "scaleAspectFit", cover: "scaleAspectFill", redraw: "scaleToFill" };
/** @type {Record<string, string>} */
const SIZERS = { aspectScaleDownByWidth: "width", aspectScaleDownByHeight: "height" };
const TRACING = ["traceparent", "tracestate", "baggage", "x-request-id", "x-correlation-id"];
const SIZE = ["width", "height", "sizer", "sizeForDisplay"];
const CORNERS = ["topLeft", "topRight", "bottomLeft", "bottomRight"];

/**
 * The Redis keys of the results of a job, in the order of its variants, or the only one.
 *
 * The job must be valid. Throws a RangeError for a job with a preset without the fields of the preset, and for invalid colors.
 * @param {Job} job
 * @param {Template} [preset] the fields of the job's preset
 */
export function resultKeys(job, preset) {
  const source = hash(sourceText(job, preset));
  return variantTexts(job, preset).map((variant) => `halcyon:{${source}}:${hash(variant)}`);
}

/**
 * The canonical text that identifies the source of a job. See resultKeys.
 * @param {Job} job
 * @param {Template} [preset]
 */
export function sourceText(job, preset) {
  const fields = merged(job, preset);
  const tenant = fields.tenant === undefined ? "" : `tenant:${fields.tenant}\n`;
  const headers = Object.entries(given(fields.headers ?? {})).map(([name, value]) => [name.toLowerCase(), value]);
  const lines = headers.filter(([name]) => !TRACING.includes(name)).sort(([a], [b]) => (a < b ? -1 : 1));
  return `halcyon-source/1\n${tenant}${lines.map(([name, value]) => `header: ${name}=${value}\n`).join("")}${source(fields.source)}\n`;
}

/**
 * The canonical text of each variant of a job. See resultKeys.
 * @param {Job} job
 * @param {Template} [preset]
 * @returns {string[]}
 */
export function variantTexts(job, preset) {
  const fields = merged(job, preset);
  return (fields.variants ?? [{}]).map((/** @type {Fields} */ output) => {
    // A variant that has any field of the size has all of them.
    const isSized = SIZE.some((name) => output[name] !== undefined);
    const inherited = Object.entries(fields).filter(([name]) => !(isSized && SIZE.includes(name)));
    const own = Object.entries(output).filter(([, value]) => value !== undefined);
    return variant(given({ ...Object.fromEntries(inherited), ...Object.fromEntries(own) }));
  });
}

/** @param {string} canonical */
const hash = (canonical) => hexadecimal(sha256(new TextEncoder().encode(canonical))).slice(0, 32);

/**
 * The fields that are neither null nor undefined.
 * @param {object} fields
 * @returns {Fields}
 */
const given = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));

/**
 * @param {Job} job
 * @param {Template | undefined} preset
 */
function merged(job, preset) {
  const own = given(job);
  if (own.preset !== undefined && preset === undefined) throw new RangeError("the keys of a job with a preset depend on the fields of the preset");
  return { ...given(preset ?? {}), ...own };
}

// The source

/** @param {any} video */
function frames({ seconds, contactSheet, preview }) {
  if ((contactSheet ?? null) !== null) return `sheet ${contactSheet.columns ?? 4}x${contactSheet.rows ?? 4} ${contactSheet.width ?? 320}`;
  if ((preview ?? null) !== null) return `preview ${preview.frames ?? 10} ${text(preview.duration ?? 3)} ${preview.width ?? 320}`;
  return text(seconds ?? 0);
}

/**
 * @param {any} value
 * @returns {string}
 */
function source(value) {
  if (typeof value === "object") {
    if ("initials" in value) return initials(value.initials, value.background, value.foreground);
    if (typeof value.url === "string") return (value.cacheKey ?? null) === null ? source(value.url) : `url:key=${value.cacheKey}`;
    if ("base64" in value) return data(decodedBase64(value.base64), value.cacheKey);
    if ("video" in value) return `video:${frames(value)} ${source(value.video)}`;
    const [name, parameters] = rule(value);
    return `custom:${name} ${compact(parameters)}`;
  }
  const colon = value.indexOf(":");
  const [scheme, rest] = [value.slice(0, colon), value.slice(colon + 1)];
  if (scheme === "initials") return initials(rest);
  switch (scheme.toLowerCase()) {
    case "http":
    case "https":
      return web(value);
    case "file":
      return file(rest);
    case "s3":
      return s3(rest);
    case "data":
      return dataURL(rest);
    default:
      return `custom:${scheme} ${rest}`;
  }
}

/** @param {string} url */
function web(url) {
  const match = /^(https?):\/\/([^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)(?::([0-9]*))?([^#]*)/i.exec(url);
  if (!match) throw new RangeError(`"${url}" is not a URL`);
  const [scheme, user, host, digits, tail] = [match[1].toLowerCase(), match[2] ?? "", match[3], match[4], match[5]];
  const port = digits ? Number(digits) : undefined;
  const shown = port === undefined || port === { http: 80, https: 443 }[scheme] ? "" : `:${port}`;
  return `url:${scheme}://${user}${lowerCase(host)}${shown}${tail.startsWith("/") ? "" : "/"}${tail}`;
}

/** @param {string} host */
const lowerCase = (host) => host.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/** @param {string} rest */
function file(rest) {
  const path = rest.startsWith("//") ? rest.slice(rest.indexOf("/", 2) + 1 || rest.length) : rest;
  const parts = path.split("/").map((part) => new TextDecoder().decode(percentDecoded(part)));
  return `file:${parts.filter((part) => part !== "" && part !== ".").map((part) => `/${part}`).join("")}`;
}

/** @param {string} rest */
function s3(rest) {
  const [, bucket, key, version] = /^\/\/([^/]*)\/([^?]*)(.*)$/s.exec(rest) ?? ["", "", "", ""];
  const encoded = Array.from(percentDecoded(key), (byte) =>
    /[A-Za-z0-9\-._~/]/.test(String.fromCharCode(byte)) ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
  );
  return `s3:${bucket}/${encoded.join("")}${version}`;
}

/** @param {string} rest */
function dataURL(rest) {
  const comma = rest.indexOf(",");
  const content = percentDecoded(rest.slice(comma + 1));
  const isBase64 = rest.slice(0, comma).toLowerCase().endsWith(";base64");
  return data(isBase64 ? decodedBase64(new TextDecoder().decode(content)) : content);
}

/**
 * @param {Uint8Array} content
 * @param {string | null} [key]
 */
const data = (content, key) => ((key ?? null) === null ? `data:sha256=${hexadecimal(sha256(content))}` : `data:key=${key}`);

/** @param {string} encoded */
const decodedBase64 = (encoded) => Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));

/** @param {string} encoded */
function percentDecoded(encoded) {
  const bytes = new TextEncoder().encode(encoded);
  const decoded = [];
  for (let i = 0; i < bytes.length; i++) {
    if (bytes[i] === 0x25) {
      decoded.push(parseInt(String.fromCharCode(bytes[i + 1], bytes[i + 2]), 16));
      i += 2;
    } else decoded.push(bytes[i]);
  }
  return Uint8Array.from(decoded);
}

/**
 * @param {string} letters
 * @param {string | null} [background]
 * @param {string | null} [foreground]
 */
function initials(letters, background, foreground) {
  // By default one of twelve hues, by the FNV-1a of the letters.
  const fnv = new TextEncoder().encode(letters).reduce((value, byte) => Math.imul(value ^ byte, 16777619), 2166136261) >>> 0;
  const back = color(background ?? hslColor((fnv % 12) * 30, 0.55, 0.42));
  const [red, green, blue] = [1, 3, 5].map((place) => (parseInt(back.slice(place, place + 2), 16) / 255) ** 2);
  const front = color(foreground ?? (0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.36 ? "black" : "white"));
  return `initials:${letters} ${back} ${front}`;
}

/**
 * JSON without spaces, with the members of objects in the order of their names.
 * @param {any} value
 * @returns {string}
 */
function compact(value) {
  if (Array.isArray(value)) return `[${value.map(compact).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const names = Object.keys(value).sort((a, b) => {
    // By code points, which is the order of UTF-8.
    const [left, right] = [Array.from(a, (c) => c.codePointAt(0) ?? 0), Array.from(b, (c) => c.codePointAt(0) ?? 0)];
    const place = left.findIndex((point, i) => point !== right[i]);
    return place < 0 ? left.length - right.length : left[place] - (right[place] ?? -1);
  });
  return `{${names.map((name) => `${JSON.stringify(name)}:${compact(value[name])}`).join(",")}}`;
}

// The variant

/**
 * The name and the parameters of what is a name, or an object of one name and its parameters.
 * @param {any} value
 * @returns {[string, any]}
 */
const rule = (value) => {
  const [name, parameters] = typeof value === "string" ? [value, {}] : Object.entries(value)[0];
  return [name, parameters ?? {}];
};

/**
 * What decides the size: display, width, height, custom or natural.
 * @param {Fields} fields
 */
function goalOf(fields) {
  if (fields.sizeForDisplay === false) return "natural";
  if ("width" in fields && "height" in fields) return "display";
  if ("width" in fields) return "width";
  if ("height" in fields) return "height";
  const [name] = rule(fields.sizer ?? "natural");
  return name === "natural" ? name : SIZERS[name] ?? "custom";
}

/** @param {Fields} fields */
function size(fields) {
  const [scale, goal] = [rounded(fields.screenScale ?? 1), goalOf(fields)];
  if (goal === "natural") return goal;
  if (goal === "display") return `${text(points(fields.width))}x${text(points(fields.height))}@${text(scale)} ${mode(fields)}`;
  if (goal in fields) return `${goal} ${text(Math.max(1, halfAway(points(fields[goal]))) * scale)}`;
  const [name, parameters] = rule(fields.sizer);
  return name in SIZERS ? `${goal} ${text(points(parameters))}` : `custom ${name} ${compact(parameters)}`;
}

/** @param {Fields} fields */
function mode(fields) {
  const name = MODES[fields.contentMode] ?? fields.contentMode ?? "scaleAspectFill";
  const options = fields.scaleOptions ?? "";
  if (name === "scaleAspectFit" && options.startsWith("fitCropsExcess")) return `${name} cropsExcess`;
  if (name === "scaleAspectFill" && options.toLowerCase().endsWith("fillleavesexcess")) return `${name} leavesExcess`;
  if (name === "scaleAspectFit" && (fields.position ?? "center") !== "center") return `${name} ${fields.position}`;
  return name;
}

/**
 * The detection of margins; undefined if they are kept.
 * @param {Fields} fields
 */
function trim({ trim: value }) {
  if (value === undefined || value === false) return undefined;
  const { tolerance = 10, background, fuzz = 0 } = given(value === true ? {} : value);
  const parts = [tolerance, background !== undefined && `background=${color(background)}`, rounded(fuzz) > 0 && `fuzz=${text(fuzz)}`];
  return parts.filter((part) => part !== false).join(" ");
}

/**
 * @param {Fields} fields
 * @param {boolean} crops
 * @returns {string | undefined}
 */
function gravity(fields, crops) {
  const value = fields.gravity ?? "center";
  if (goalOf(fields) !== "display" || mode(fields) !== "scaleAspectFill" || value === "center") return undefined;
  const detected = typeof value === "string" ? { detect: value } : value;
  if (DETECTIONS.includes(detected.detect)) {
    const fallback = detected.fallback ?? "attention";
    const place = typeof fallback === "string" ? fallback : `${text(fallback.x)},${text(fallback.y)}`;
    return `${detected.detect} confidence=${text(detected.confidence ?? 0.5)} fallback=${place}`;
  }
  if (typeof value === "string") return value;
  const point = `${text(value.x)},${text(value.y)}`;
  return point === "0.5,0.5" && !crops ? undefined : point;
}

const DETECTIONS = ["faces", "objects"];
// The name and version of the detector that Halcyon provides (images.detectorName).
const DETECTOR = "opencv-centerface/1";

/**
 * True if a detector is needed.
 * @param {Fields} fields
 */
function detects(fields) {
  const names = [...(fields.before ?? []), ...(fields.processors ?? [])].map((step) => rule(step)[0]);
  const [gravityKind] = (gravity(fields, true) ?? "").split(" ");
  return DETECTIONS.includes(gravityKind) || names.includes("blurFaces") || names.includes("pixelateFaces") || fields.faces;
}

// The fields of an output on which facts about the source depend.
const FACTS = ["page", "tolerance", "blurhash", "dominantColor", "palette", "thumbhash", "phash", "faces"];

/** @param {any} value */
function quantize(value) {
  const parts = typeof value === "object" ? value : { colors: value === true ? 256 : value };
  return `quantize=${parts.colors ?? 256} dither=${text(parts.dither ?? 1)}`;
}

/** @param {Fields} all */
function variant(all) {
  const info = all.info;
  const fields = info ? Object.fromEntries(Object.entries(all).filter(([name]) => FACTS.includes(name))) : all;
  const rect = fields.cropRect ?? { x: 0, y: 0, width: 1, height: 1 };
  const sides = [rect.x, rect.y, rect.width, rect.height].map(exact);
  const isPixels = rect.unit === "pixels";
  const crops = (isPixels || sides.join() !== "0,0,1,1") && sides[2] !== "0" && sides[3] !== "0";
  const goal = goalOf(fields);
  const background = color(fields.background ?? "transparent");
  const scale = rounded(fields.screenScale ?? 1);
  const margins = trim(fields);
  const point = gravity(fields, crops || margins !== undefined);
  const lines = [
    "halcyon-variant/1",
    (fields.page ?? 1) !== 1 && `page=${fields.page}`,
    ...(fields.before ?? []).map((/** @type {any} */ step) => `before=${processor(step, scale)}`),
    crops && `crop=${sides}${isPixels ? " pixels" : ""}`,
    margins !== undefined && `trim=${margins}`,
    `size=${size(fields)}`,
    point && `gravity=${point}`,
    goal === "display" && fields.upscale === false && "upscale=false",
    ["width", "height"].includes(goal) && fields.upscale === true && "upscale=true",
    (fields.interpolationQuality ?? "default") !== "default" && `interpolation=${fields.interpolationQuality}`,
    fields.linearLight && "linear-light",
    background !== "#00000000" && `background=${background}`,
    ...(fields.processors ?? []).map((/** @type {any} */ step) => `processor=${processor(step, scale)}`),
    (fields.format ?? "auto") !== "auto" && `format=${fields.format}`,
    "quality" in fields &&
      (typeof fields.quality === "object" ? `quality=target ${text(fields.quality.target)}` : `quality=${fields.quality}`),
    "maximumBytes" in fields && `maximum-bytes=${fields.maximumBytes}`,
    "maximumBytes" in fields && fields.allowResize && "allow-resize",
    fields.lossless && "lossless",
    fields.nearLossless && "near-lossless",
    (fields.chromaSubsampling ?? "auto") !== "auto" && `chroma=${fields.chromaSubsampling}`,
    (fields.bitDepth ?? 8) !== 8 && `bit-depth=${fields.bitDepth}`,
    (fields.quantize ?? false) !== false && quantize(fields.quantize),
    "effort" in fields && `effort=${fields.effort}`,
    fields.progressive && "progressive",
    fields.stripMetadata === false && "metadata",
    fields.keepProfile && "profile",
    (fields.profile ?? "srgb") !== "srgb" && `profile=${fields.profile}`,
    "frames" in fields && `frames=${fields.frames}`,
    "tolerance" in fields && `tolerance=${fields.tolerance}`,
    fields.blurhash && "blurhash",
    fields.dominantColor && "dominant-color",
    fields.palette && "palette",
    fields.thumbhash && "thumbhash",
    fields.phash && "phash",
    fields.faces && "faces",
    detects(fields) && `detector=${DETECTOR}`,
    info && (info.location ? "info=location" : "info"),
  ];
  return lines.filter(Boolean).map((line) => `${line}\n`).join("");
}

// Processors

/**
 * @param {any} value
 * @param {number} scale
 */
function processor(value, scale) {
  const [name, parameters] = rule(value);
  const parts = PARTS[name];
  return parts ? [name, ...parts(given(parameters), scale)].join(" ") : `${name} ${compact(parameters)}`;
}

/**
 * @param {Fields} p
 * @param {string} name
 * @param {number} otherwise
 */
const number = (p, name, otherwise) => `${name}=${text(p[name] ?? otherwise)}`;

/**
 * @param {Fields} p
 * @param {number} scale
 */
const pixels = (p, scale) => `${wholePixels(p.width, scale)}x${wholePixels(p.height, scale)}`;

/**
 * The radius of the corners, and which of them, unless it is all.
 * @param {Fields} p
 * @param {number} scale
 */
function radius(p, scale) {
  const fraction = ["widthFraction", "heightFraction"].find((name) => name in p);
  const corners = CORNERS.filter((corner) => (p.corners ?? CORNERS).includes(corner));
  const length = fraction ? `${fraction}=${text(rounded(p[fraction]))}` : `radius=${text(rounded(p.radius ?? 0) * scale)}`;
  return corners.length < 4 ? [length, `corners=${corners}`] : [length];
}

/**
 * The blend mode, unless it is normal.
 * @param {Fields} p
 */
const blendMode = (p) => ((p.mode ?? "normal") === "normal" ? [] : [`mode=${p.mode}`]);

/**
 * The offset in whole pixels, unless it is zero.
 * @param {Fields} p
 * @param {number} scale
 */
function offset(p, scale) {
  const [x, y] = [p.offset?.x ?? 0, p.offset?.y ?? 0].map((length) => wholePixels(Math.abs(length), scale, 0) * Math.sign(length));
  return x || y ? [`offset=${x},${y}`] : [];
}

/**
 * An angle, 0 up to 360.
 * @param {Fields} p
 */
function degrees(p) {
  const rest = p.degrees % 360;
  const angle = rounded(rest < 0 ? rest + 360 : rest);
  return `degrees=${text(angle < 360 ? angle : 0)}`;
}

/** @type {Record<string, (p: Fields, scale: number) => string[]>} */
const PARTS = {
  roundCorner: (p, scale) => {
    const background = color(p.background ?? "transparent");
    return [...radius(p, scale), ...(background === "#00000000" ? [] : [`background=${background}`])];
  },
  resize: (p, scale) => [pixels(p, scale), p.mode ?? "none"],
  crop: (p, scale) => [pixels(p, scale), number(p.anchor ?? {}, "x", 0.5), number(p.anchor ?? {}, "y", 0.5)],
  blur: (p, scale) => [`radius=${text(points(p.radius) * scale)}`],
  tint: (p) => [`color=${color(p.color)}`],
  overlay: (p) =>
    "color" in p ? [`color=${color(p.color)}`, number(p, "fraction", 0.5)] : [number(p, "opacity", 1), ...blendMode(p), `source=${source(p.source)}`],
  blend: (p) => [p.mode, number(p, "opacity", 1), `background=${color(p.background)}`],
  colorControls: (p) => [number(p, "brightness", 0), number(p, "contrast", 1), number(p, "saturation", 1), number(p, "exposure", 0)],
  blackWhite: () => [],
  border: (p, scale) => [`width=${text(points(p.width) * scale)}`, `color=${color(p.color ?? "black")}`, ...radius(p, scale)],
  downsample: (p, scale) => [pixels(p, scale)],
  sharpen: (p) => [number(p, "radius", 0.5), number(p, "amount", 1)],
  pixelate: (p, scale) => [`size=${wholePixels(p.size, scale)}`],
  blurFaces: (p) => [number(p, "amount", 0.15), number(p, "margin", 0.2), number(p, "confidence", 0.3)],
  pixelateFaces: (p) => [`cells=${p.cells ?? 8}`, number(p, "margin", 0.2), number(p, "confidence", 0.3)],
  watermark: (p, scale) => [
    p.position ?? "bottomRight",
    `margin=${wholePixels(p.margin ?? 0, scale, 0)}`,
    ...("widthFraction" in p ? [`width=${text(points(p.widthFraction))}`] : []),
    ...(rounded(p.scale ?? 1) === 1 ? [] : [`scale=${text(points(p.scale))}`]),
    ...offset(p, scale),
    number(p, "opacity", 1),
    ...blendMode(p),
    ...(p.tiled ? ["tiled"] : []),
    `source=${source(p.source)}`,
  ],
  rotate: (p) => [degrees(p), `background=${color(p.background ?? "transparent")}`],
  flip: (p) => [p.direction ?? "horizontal"],
  pad: (p, scale) => [
    ...["top", "right", "bottom", "left"].map((side) => `${side}=${wholePixels(p[side] ?? p.all ?? 0, scale, 0)}`),
    (p.fill ?? "color") === "color" ? `color=${color(p.color ?? "transparent")}` : `fill=${p.fill}`,
  ],
  text: (p, scale) => {
    const outline = wholePixels(p.outlineWidth ?? 0, scale, 0);
    return [
      p.position ?? "center",
      `margin=${wholePixels(p.margin ?? 0, scale, 0)}`,
      ...offset(p, scale),
      ...("size" in p ? [`size=${text(Math.max(1, rounded(points(p.size) * scale)))}`] : []),
      ...["width", "height"].filter((side) => side in p).map((side) => `${side}=${wholePixels(p[side], scale)}`),
      `align=${p.align ?? "left"}`,
      `color=${color(p.color ?? "black")}`,
      ...(outline ? [`outline=${outline}`, `outlineColor=${color(p.outlineColor ?? "white")}`] : []),
      number(p, "opacity", 1),
      ...["bold", "italic"].filter((face) => p[face]),
      `font=${p.font}`,
      `text=${p.text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
    ];
  },
  mask: (p) => ["shape" in p ? `shape=${p.shape}` : `source=${source(p.source)}`],
  hue: (p) => [degrees(p)],
  gamma: (p) => [number(p, "gamma", 2.2)],
  normalize: (p) => [number(p, "lower", 1), number(p, "upper", 99)],
  duotone: (p) => [`dark=${color(p.dark)}`, `light=${color(p.light)}`],
};
