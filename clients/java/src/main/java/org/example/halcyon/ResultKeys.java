package org.example.halcyon;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * The keys under which Redis stores the results of a job, so that a program can look for an image without a request: {@code HGET key body}. The job must be
 * valid. The keys of a job with a preset depend on the preset.
 *
 * @param sourceText the canonical text of the source (docs/keys.md)
 * @param variantTexts the canonical texts of the outputs
 * @param keys the keys, in the order of the variants of the job
 */
public record ResultKeys(String sourceText, List<String> variantTexts, List<String> keys) {
    private static final String TRANSPARENT = "#00000000";
    private static final Set<String> SIZE = Set.of("width", "height", "sizer", "sizeForDisplay");
    private static final Set<String> TRACING = Set.of("traceparent", "tracestate", "baggage", "x-request-id", "x-correlation-id");

    /**
     * Computes the keys of a job.
     *
     * @throws IllegalArgumentException if the job is invalid, or has a preset
     */
    public static ResultKeys of(Job job) {
        return of(job.toJson());
    }

    /**
     * Computes the keys of a job in JSON.
     *
     * @throws IllegalArgumentException if the job is invalid, or has a preset
     */
    public static ResultKeys of(String job) {
        Map<String, Object> fields = Json.parseObject(job);
        if (fields.get("preset") != null) throw new IllegalArgumentException("the keys depend on the preset of the job");
        try {
            String source = sourceText(fields);
            List<String> variants = outputs(fields).stream().map(ResultKeys::variantText).toList();
            return new ResultKeys(
                source, variants, variants.stream().map(each -> "halcyon:{" + first128Bits(source) + "}:" + first128Bits(each)).toList());
        } catch (ClassCastException | NullPointerException error) {
            throw new IllegalArgumentException("invalid job: a field is missing or has another type", error);
        }
    }

    private static byte[] sha256(byte[] bytes) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(bytes);
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException("every Java platform has SHA-256", error);
        }
    }

    private static String first128Bits(String text) {
        return HexFormat.of().formatHex(sha256(text.getBytes(StandardCharsets.UTF_8)), 0, 16);
    }

    // Members of an object. Null is the same as absence.

    @SuppressWarnings("unchecked")
    private static Map<String, Object> object(Object value) {
        Map<String, Object> present = new LinkedHashMap<>((Map<String, Object>) value);
        present.values().removeIf(each -> each == null);
        return present;
    }

    private static String text(Map<String, Object> fields, String name, String standard) {
        return (String) fields.getOrDefault(name, standard);
    }

    private static double number(Map<String, Object> fields, String name, double standard) {
        return ((Number) fields.getOrDefault(name, standard)).doubleValue();
    }

    private static boolean flag(Map<String, Object> fields, String name, boolean standard) {
        return (Boolean) fields.getOrDefault(name, standard);
    }

    private static List<?> list(Map<String, Object> fields, String name) {
        return (List<?>) fields.getOrDefault(name, List.of());
    }

    /** A value that is a name, or an object of one name and its parameters. */
    private record Rule(String name, Object parameters) {
        static Rule of(Object value) {
            if (value instanceof String name) return new Rule(name, Map.of());
            Map<?, ?> members = (Map<?, ?>) value;
            if (members.size() != 1) throw new IllegalArgumentException(members + " does not have one member");
            Map.Entry<?, ?> only = members.entrySet().iterator().next();
            return new Rule((String) only.getKey(), only.getValue());
        }
    }

    // The source text.

    private static String sourceText(Map<String, Object> job) {
        Object tenant = job.get("tenant"), headers = job.get("headers");
        return "halcyon-source/1\n" + (tenant == null ? "" : "tenant:" + tenant + "\n") + (headers == null ? "" : headerLines(object(headers)))
            + sourceLine(job.get("source")) + "\n";
    }

    /** A line for each header that may change the response of an origin. */
    private static String headerLines(Map<String, Object> headers) {
        Map<String, Object> values = new TreeMap<>();
        headers.forEach((name, value) -> values.put(name.toLowerCase(Locale.ROOT), value));
        values.keySet().removeAll(TRACING);
        return values.entrySet().stream().map(each -> "header: " + each.getKey() + "=" + each.getValue() + "\n").collect(Collectors.joining());
    }

    private static String sourceLine(Object value) {
        if (value instanceof String url) return urlLine(url);
        Map<String, Object> source = object(value);
        if (source.containsKey("initials")) return initials(source);
        if (source.containsKey("url")) return source.containsKey("cacheKey") ? "url:key=" + source.get("cacheKey") : sourceLine(source.get("url"));
        if (source.containsKey("base64"))
            return source.containsKey("cacheKey") ? "data:key=" + source.get("cacheKey") : hashLine(base64((String) source.get("base64")));
        if (source.containsKey("video")) return "video:" + frames(source) + " " + sourceLine(source.get("video"));
        Rule custom = Rule.of(value);
        return "custom:" + custom.name + " " + compact(custom.parameters);
    }

    private static String frames(Map<String, Object> video) {
        if (video.get("contactSheet") != null) {
            Map<String, Object> sheet = object(video.get("contactSheet"));
            return "sheet " + whole(sheet, "columns", 4) + "x" + whole(sheet, "rows", 4) + " " + whole(sheet, "width", 320);
        }
        if (video.get("preview") != null) {
            Map<String, Object> preview = object(video.get("preview"));
            return "preview " + whole(preview, "frames", 10) + " " + Numbers.text(number(preview, "duration", 3)) + " " + whole(preview, "width", 320);
        }
        return Numbers.text(number(video, "seconds", 0));
    }

    private static String whole(Map<String, Object> object, String name, double standard) {
        return Numbers.whole(number(object, name, standard));
    }

    private static String urlLine(String url) {
        int colon = url.indexOf(':');
        String scheme = colon < 0 ? url : url.substring(0, colon), rest = colon < 0 ? "" : url.substring(colon + 1);
        if (scheme.equals("initials")) return initials(Map.of("initials", rest));
        return switch (scheme.toLowerCase(Locale.ROOT)) {
            case "http", "https" -> "url:" + canonicalUrl(scheme.toLowerCase(Locale.ROOT), rest);
            case "file" -> fileLine(rest);
            case "s3" -> objectLine(rest);
            case "data" -> dataLine(rest);
            default -> "custom:" + scheme + " " + rest;
        };
    }

    private static String canonicalUrl(String scheme, String afterScheme) {
        String rest = afterScheme.replaceFirst("^//", "").replaceFirst("(?s)#.*", "");
        String authority = rest.replaceFirst("(?s)[/?].*", ""), tail = rest.substring(authority.length());
        int at = authority.lastIndexOf('@') + 1;
        String user = authority.substring(0, at), host = lowerCase(authority.substring(at)), port = "";
        int colon = host.lastIndexOf(':');
        if (colon > host.lastIndexOf(']')) {
            port = host.substring(colon + 1).replaceFirst("^0+", "");
            host = host.substring(0, colon);
        }
        boolean isDefault = port.isEmpty() || port.equals(scheme.equals("http") ? "80" : "443");
        return scheme + "://" + user + host + (isDefault ? "" : ":" + port) + (tail.startsWith("/") ? "" : "/") + tail;
    }

    /** Lower case of the letters A to Z alone. */
    private static String lowerCase(String text) {
        StringBuilder lower = new StringBuilder(text);
        for (int index = 0; index < text.length(); index++) if (text.charAt(index) >= 'A' && text.charAt(index) <= 'Z') lower.setCharAt(index, (char) (text.charAt(index) + 32));
        return lower.toString();
    }

    private static String fileLine(String rest) {
        String path = rest.startsWith("//") ? rest.substring(rest.indexOf('/', 2) + 1) : rest;
        return "file:" + Arrays.stream(path.split("/")).map(part -> new String(unescaped(part), StandardCharsets.UTF_8))
            .filter(part -> !part.isEmpty() && !part.equals(".")).map(part -> "/" + part).collect(Collectors.joining());
    }

    private static String objectLine(String rest) {
        String[] parts = rest.replaceFirst("^//", "").split("/", 2), key = parts[parts.length - 1].split("\\?", 2);
        return "s3:" + parts[0] + "/" + Target.encode(unescaped(key[0]), "/") + (key.length == 2 ? "?" + key[1] : "");
    }

    private static String dataLine(String rest) {
        int comma = rest.indexOf(',');
        byte[] content = unescaped(rest.substring(comma + 1));
        boolean isBase64 = comma > 0 && rest.substring(0, comma).toLowerCase(Locale.ROOT).endsWith(";base64");
        return hashLine(isBase64 ? base64(new String(content, StandardCharsets.UTF_8)) : content);
    }

    private static String hashLine(byte[] content) {
        return "data:sha256=" + HexFormat.of().formatHex(sha256(content));
    }

    private static byte[] base64(String text) {
        return Base64.getDecoder().decode(text);
    }

    /** Decodes percent-encoded bytes. */
    private static byte[] unescaped(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream decoded = new ByteArrayOutputStream();
        for (int index = 0; index < bytes.length; index++) {
            if (bytes[index] != '%') {
                decoded.write(bytes[index]);
                continue;
            }
            if (index + 2 >= bytes.length) throw new IllegalArgumentException("invalid escape in " + text);
            decoded.write(HexFormat.fromHexDigits(new String(bytes, index + 1, 2, StandardCharsets.ISO_8859_1)));
            index += 2;
        }
        return decoded.toByteArray();
    }

    private static String initials(Map<String, Object> source) {
        String letters = (String) source.get("initials");
        int hash = (int) 2166136261L;
        for (byte each : letters.getBytes(StandardCharsets.UTF_8)) hash = (hash ^ each & 255) * 16777619;
        int[] chosen = Colors.hsl(Integer.remainderUnsigned(hash, 12) * 30, 0.55, 0.42);
        String background = source.containsKey("background") ? Colors.canonical((String) source.get("background"))
            : String.format("#%02x%02x%02xff", chosen[0], chosen[1], chosen[2]);
        int[] channels = Colors.parse(background);
        double luminance = 0.2126 * square(channels[0]) + 0.7152 * square(channels[1]) + 0.0722 * square(channels[2]);
        String foreground = text(source, "foreground", luminance > 0.36 ? "black" : "white");
        return "initials:" + letters + " " + background + " " + Colors.canonical(foreground);
    }

    private static double square(int channel) {
        return channel * channel / 65025.0;
    }

    // The variant text.

    /** The fields of each output. A variant that has a field of the size inherits none of them. */
    private static List<Map<String, Object>> outputs(Map<String, Object> job) {
        List<?> variants = job.get("variants") == null ? List.of() : (List<?>) job.get("variants");
        List<Map<String, Object>> outputs = new ArrayList<>();
        for (Object each : variants.isEmpty() ? List.of(Map.of()) : variants) {
            @SuppressWarnings("unchecked")
            Map<String, Object> variant = (Map<String, Object>) each, fields = new LinkedHashMap<>(job);
            if (variant.keySet().stream().anyMatch(SIZE::contains)) fields.keySet().removeAll(SIZE);
            fields.putAll(variant);
            outputs.add(object(fields));
        }
        return outputs;
    }

    /** What decides the size: display, width, height, custom or natural. */
    private static String goal(Map<String, Object> output) {
        boolean hasWidth = output.containsKey("width"), hasHeight = output.containsKey("height");
        if (!flag(output, "sizeForDisplay", true)) return "natural";
        if (hasWidth && hasHeight) return "display";
        if (hasWidth || hasHeight) return hasWidth ? "width" : "height";
        return switch (Rule.of(output.getOrDefault("sizer", "natural")).name) {
            case "natural" -> "natural";
            case "aspectScaleDownByWidth" -> "width";
            case "aspectScaleDownByHeight" -> "height";
            default -> "custom";
        };
    }

    private static String size(Map<String, Object> output, double scale) {
        String goal = goal(output);
        if (goal.equals("natural")) return goal;
        if (goal.equals("display"))
            return Numbers.text(Numbers.length(number(output, "width", 0))) + "x" + Numbers.text(Numbers.length(number(output, "height", 0))) + "@"
                + Numbers.text(scale) + " " + mode(output);
        if (output.containsKey(goal))
            return goal + " " + Numbers.text(Math.max(1, Numbers.halfAway(Numbers.length(number(output, goal, 0)))) * scale);
        Rule sizer = Rule.of(output.get("sizer"));
        if (goal.equals("custom")) return "custom " + sizer.name + " " + compact(sizer.parameters);
        return goal + " " + Numbers.text(Numbers.length(((Number) sizer.parameters).doubleValue()));
    }

    /** The content mode, and what is done with excess. */
    private static String mode(Map<String, Object> output) {
        String given = text(output, "contentMode", "scaleAspectFill"), options = text(output, "scaleOptions", "").toLowerCase(Locale.ROOT);
        String mode = switch (given) {
            case "fill", "redraw" -> "scaleToFill";
            case "contain" -> "scaleAspectFit";
            case "cover" -> "scaleAspectFill";
            default -> given;
        };
        if (mode.equals("scaleAspectFit") && options.startsWith("fitcropsexcess")) return mode + " cropsExcess";
        if (mode.equals("scaleAspectFill") && options.endsWith("fillleavesexcess")) return mode + " leavesExcess";
        String position = text(output, "position", "center");
        return mode.equals("scaleAspectFit") && !position.equals("center") ? mode + " " + position : mode;
    }

    /** The detection of margins; null if they are kept. */
    private static String trim(Map<String, Object> output) {
        Object given = output.getOrDefault("trim", false);
        if (given.equals(false)) return null;
        Map<String, Object> parameters = given.equals(true) ? Map.of() : object(given);
        String text = Numbers.whole(number(parameters, "tolerance", 10));
        if (parameters.containsKey("background")) text += " background=" + Colors.canonical(text(parameters, "background", ""));
        double fuzz = number(parameters, "fuzz", 0);
        return Numbers.rounded(fuzz) > 0 ? text + " fuzz=" + Numbers.text(fuzz) : text;
    }

    /** The part that is kept; null for the middle of what is used. */
    private static String gravity(Map<String, Object> output, boolean crops) {
        Object gravity = output.getOrDefault("gravity", "center");
        if (gravity.equals("center") || !goal(output).equals("display") || !mode(output).equals("scaleAspectFill")) return null;
        Map<String, Object> detection = gravity instanceof String word ? Map.of("detect", word) : object(gravity);
        if (DETECTIONS.contains(text(detection, "detect", ""))) {
            Object fallback = detection.get("fallback") == null ? "attention" : detection.get("fallback");
            if (!(fallback instanceof String)) {
                fallback = Numbers.text(number(object(fallback), "x", 0)) + "," + Numbers.text(number(object(fallback), "y", 0));
            }
            return detection.get("detect") + " confidence=" + Numbers.text(number(detection, "confidence", 0.5)) + " fallback=" + fallback;
        }
        if (gravity instanceof String word) return word;
        Map<String, Object> point = object(gravity);
        String text = Numbers.text(number(point, "x", 0)) + "," + Numbers.text(number(point, "y", 0));
        return text.equals("0.5,0.5") && !crops ? null : text;
    }

    private static final Set<String> DETECTIONS = Set.of("faces", "objects");
    /** The name and version of the detector that Halcyon provides (images.detectorName). */
    private static final String DETECTOR = "opencv-centerface/1";

    /** True if a detector is needed. */
    private static boolean detects(Map<String, Object> output) {
        List<Object> steps = new ArrayList<>(list(output, "before"));
        steps.addAll(list(output, "processors"));
        String gravity = gravity(output, true);
        return flag(output, "faces", false) || gravity != null && DETECTIONS.contains(gravity.split(" ")[0])
            || steps.stream().anyMatch(step -> Set.of("blurFaces", "pixelateFaces").contains(Rule.of(step).name));
    }

    /** The part of the image that is used; null for all of it. */
    private static String crop(Map<String, Object> output) {
        if (!output.containsKey("cropRect")) return null;
        Map<String, Object> rect = object(output.get("cropRect"));
        List<String> sides = List.of("x", "y", "width", "height").stream().map(side -> Numbers.exact(number(rect, side, 0))).toList();
        String text = String.join(",", sides);
        if (sides.get(2).equals("0") || sides.get(3).equals("0")) return null;
        if (text(rect, "unit", "").equals("pixels")) return text + " pixels";
        return text.equals("0,0,1,1") ? null : text;
    }

    /** The fields of an output on which facts about the source depend. */
    private static final Set<String> FACTS = Set.of("page", "tolerance", "blurhash", "dominantColor", "palette", "thumbhash", "phash", "faces");

    private static String variantText(Map<String, Object> fields) {
        List<String> lines = new ArrayList<>(List.of("halcyon-variant/1"));
        Object info = fields.get("info");
        boolean hasInfo = info != null && !Boolean.FALSE.equals(info);
        Map<String, Object> output = new LinkedHashMap<>(fields);
        if (hasInfo) output.keySet().retainAll(FACTS);
        double scale = Numbers.rounded(number(output, "screenScale", 1));
        String crop = crop(output), trim = trim(output), gravity = gravity(output, crop != null || trim != null), goal = goal(output);
        if (number(output, "page", 1) != 1) addWhole(lines, output, "page");
        for (Object step : list(output, "before")) lines.add("before=" + processor(step, scale));
        if (crop != null) lines.add("crop=" + crop);
        if (trim != null) lines.add("trim=" + trim);
        lines.add("size=" + size(output, scale));
        if (gravity != null) lines.add("gravity=" + gravity);
        if (goal.equals("display") && !flag(output, "upscale", true)) lines.add("upscale=false");
        if ((goal.equals("width") || goal.equals("height")) && flag(output, "upscale", false)) lines.add("upscale=true");
        String interpolation = text(output, "interpolationQuality", "default");
        if (!interpolation.equals("default")) lines.add("interpolation=" + interpolation);
        if (flag(output, "linearLight", false)) lines.add("linear-light");
        String background = Colors.canonical(text(output, "background", "transparent"));
        if (!background.equals(TRANSPARENT)) lines.add("background=" + background);
        for (Object step : list(output, "processors")) lines.add("processor=" + processor(step, scale));
        String format = text(output, "format", "auto");
        if (!format.equals("auto")) lines.add("format=" + format);
        if (output.get("quality") instanceof Map<?, ?> target) lines.add("quality=target " + Numbers.text(number(object(target), "target", 0)));
        else addWhole(lines, output, "quality");
        if (output.containsKey("maximumBytes")) {
            addWhole(lines, output, "maximumBytes", "maximum-bytes");
            if (flag(output, "allowResize", false)) lines.add("allow-resize");
        }
        if (flag(output, "lossless", false)) lines.add("lossless");
        if (flag(output, "nearLossless", false)) lines.add("near-lossless");
        String sampling = text(output, "chromaSubsampling", "auto");
        if (!sampling.equals("auto")) lines.add("chroma=" + sampling);
        if (number(output, "bitDepth", 8) != 8) addWhole(lines, output, "bitDepth", "bit-depth");
        if (!output.getOrDefault("quantize", false).equals(false)) lines.add("quantize=" + quantize(output.get("quantize")));
        addWhole(lines, output, "effort");
        if (flag(output, "progressive", false)) lines.add("progressive");
        if (!flag(output, "stripMetadata", true)) lines.add("metadata");
        if (flag(output, "keepProfile", false)) lines.add("profile");
        String profile = text(output, "profile", "srgb");
        if (!profile.equals("srgb")) lines.add("profile=" + profile);
        addWhole(lines, output, "frames");
        if (output.containsKey("tolerance")) lines.add("tolerance=" + output.get("tolerance"));
        if (flag(output, "blurhash", false)) lines.add("blurhash");
        if (flag(output, "dominantColor", false)) lines.add("dominant-color");
        for (String finding : List.of("palette", "thumbhash", "phash", "faces")) if (flag(output, finding, false)) lines.add(finding);
        if (detects(output)) lines.add("detector=" + DETECTOR);
        if (hasInfo) lines.add(info instanceof Map<?, ?> options && Boolean.TRUE.equals(options.get("location")) ? "info=location" : "info");
        return String.join("\n", lines) + "\n";
    }

    private static String quantize(Object value) {
        Map<String, Object> parts = value instanceof Map ? object(value) : value.equals(true) ? Map.of() : Map.of("colors", value);
        return Numbers.whole(number(parts, "colors", 256)) + " dither=" + Numbers.text(number(parts, "dither", 1));
    }

    private static void addWhole(List<String> lines, Map<String, Object> output, String name) {
        addWhole(lines, output, name, name);
    }

    private static void addWhole(List<String> lines, Map<String, Object> output, String name, String line) {
        if (output.containsKey(name)) lines.add(line + "=" + Numbers.whole(number(output, name, 0)));
    }

    // Processors.

    private static String processor(Object step, double scale) {
        Rule rule = Rule.of(step);
        List<String> parts = parts(rule.name, rule.parameters == null ? Map.of() : rule.parameters, scale);
        return parts.isEmpty() ? rule.name : rule.name + " " + String.join(" ", parts);
    }

    private static List<String> parts(String name, Object given, double scale) {
        Map<String, Object> p = given instanceof Map<?, ?> ? object(given) : Map.of();
        return switch (name) {
            case "roundCorner" -> {
                List<String> parts = corners(p, scale);
                String background = Colors.canonical(text(p, "background", "transparent"));
                if (!background.equals(TRANSPARENT)) parts.add("background=" + background);
                yield parts;
            }
            case "resize" -> List.of(pixels(p, scale), text(p, "mode", "none"));
            case "crop" -> {
                Map<String, Object> anchor = object(p.getOrDefault("anchor", Map.of("x", 0.5, "y", 0.5)));
                yield List.of(pixels(p, scale), part(anchor, "x", 0), part(anchor, "y", 0));
            }
            case "blur" -> List.of("radius=" + Numbers.text(Numbers.length(number(p, "radius", 0)) * scale));
            case "tint" -> List.of("color=" + Colors.canonical((String) p.get("color")));
            case "overlay" -> {
                if (p.containsKey("color")) yield List.of("color=" + Colors.canonical((String) p.get("color")), part(p, "fraction", 0.5));
                List<String> parts = new ArrayList<>(List.of(part(p, "opacity", 1)));
                parts.addAll(blendMode(p));
                parts.add("source=" + sourceLine(p.get("source")));
                yield parts;
            }
            case "blend" -> List.of((String) p.get("mode"), part(p, "opacity", 1), "background=" + Colors.canonical((String) p.get("background")));
            case "colorControls" -> List.of(part(p, "brightness", 0), part(p, "contrast", 1), part(p, "saturation", 1), part(p, "exposure", 0));
            case "blackWhite" -> List.of();
            case "border" -> {
                List<String> parts = corners(p, scale);
                parts.add(0, "color=" + Colors.canonical(text(p, "color", "black")));
                parts.add(0, "width=" + Numbers.text(Numbers.length(number(p, "width", 0)) * scale));
                yield parts;
            }
            case "downsample" -> List.of(pixels(p, scale));
            case "sharpen" -> List.of(part(p, "radius", 0.5), part(p, "amount", 1));
            case "pixelate" -> List.of("size=" + Numbers.wholePixels(number(p, "size", 0), scale, 1));
            case "blurFaces" -> List.of(part(p, "amount", 0.15), part(p, "margin", 0.2), part(p, "confidence", 0.3));
            case "pixelateFaces" ->
                List.of("cells=" + Numbers.whole(number(p, "cells", 8)), part(p, "margin", 0.2), part(p, "confidence", 0.3));
            case "watermark" -> watermark(p, scale);
            case "rotate" -> List.of(degrees(p), "background=" + Colors.canonical(text(p, "background", "transparent")));
            case "flip" -> List.of(text(p, "direction", "horizontal"));
            case "pad" -> pad(p, scale);
            case "text" -> writing(p, scale);
            case "mask" -> List.of(p.containsKey("shape") ? "shape=" + p.get("shape") : "source=" + sourceLine(p.get("source")));
            case "hue" -> List.of(degrees(p));
            case "gamma" -> List.of(part(p, "gamma", 2.2));
            case "normalize" -> List.of(part(p, "lower", 1), part(p, "upper", 99));
            case "duotone" -> List.of("dark=" + Colors.canonical((String) p.get("dark")), "light=" + Colors.canonical((String) p.get("light")));
            default -> List.of(compact(given));
        };
    }

    private static List<String> watermark(Map<String, Object> p, double scale) {
        List<String> parts = new ArrayList<>(
            List.of(text(p, "position", "bottomRight"), "margin=" + Numbers.wholePixels(number(p, "margin", 0), scale, 0)));
        if (p.containsKey("widthFraction")) parts.add("width=" + Numbers.text(Numbers.length(number(p, "widthFraction", 0))));
        double factor = number(p, "scale", 1);
        if (Numbers.rounded(factor) != 1) parts.add("scale=" + Numbers.text(Numbers.length(factor)));
        parts.addAll(offset(p, scale));
        parts.add(part(p, "opacity", 1));
        parts.addAll(blendMode(p));
        if (flag(p, "tiled", false)) parts.add("tiled");
        parts.add("source=" + sourceLine(p.get("source")));
        return parts;
    }

    private static List<String> pad(Map<String, Object> p, double scale) {
        List<String> parts = new ArrayList<>();
        for (String side : List.of("top", "right", "bottom", "left"))
            parts.add(side + "=" + Numbers.wholePixels(number(p, side, number(p, "all", 0)), scale, 0));
        String fill = text(p, "fill", "color");
        parts.add(fill.equals("color") ? "color=" + Colors.canonical(text(p, "color", "transparent")) : "fill=" + fill);
        return parts;
    }

    /** The parameters of a text. The text itself is last, with backslashes and line feeds escaped. */
    private static List<String> writing(Map<String, Object> p, double scale) {
        List<String> parts = new ArrayList<>(
            List.of(text(p, "position", "center"), "margin=" + Numbers.wholePixels(number(p, "margin", 0), scale, 0)));
        parts.addAll(offset(p, scale));
        if (p.containsKey("size")) parts.add("size=" + Numbers.text(Math.max(1, Numbers.rounded(Numbers.length(number(p, "size", 0)) * scale))));
        for (String side : List.of("width", "height"))
            if (p.containsKey(side)) parts.add(side + "=" + Numbers.wholePixels(number(p, side, 0), scale, 1));
        parts.add("align=" + text(p, "align", "left"));
        parts.add("color=" + Colors.canonical(text(p, "color", "black")));
        String outline = Numbers.wholePixels(number(p, "outlineWidth", 0), scale, 0);
        if (!outline.equals("0")) {
            parts.add("outline=" + outline);
            parts.add("outlineColor=" + Colors.canonical(text(p, "outlineColor", "white")));
        }
        parts.add(part(p, "opacity", 1));
        for (String face : List.of("bold", "italic")) if (flag(p, face, false)) parts.add(face);
        parts.add("font=" + p.get("font"));
        parts.add("text=" + text(p, "text", "").replace("\\", "\\\\").replace("\n", "\\n"));
        return parts;
    }

    /** The blend mode, unless it is normal. */
    private static List<String> blendMode(Map<String, Object> p) {
        String mode = text(p, "mode", "normal");
        return mode.equals("normal") ? List.of() : List.of("mode=" + mode);
    }

    /** The offset in whole pixels, unless it is zero. */
    private static List<String> offset(Map<String, Object> p, double scale) {
        Map<String, Object> offset = object(p.getOrDefault("offset", Map.of()));
        List<String> lengths = List.of("x", "y").stream().map(name -> {
            double points = number(offset, name, 0);
            String pixels = Numbers.wholePixels(Math.abs(points), scale, 0);
            return points < 0 && !pixels.equals("0") ? "-" + pixels : pixels;
        }).toList();
        return lengths.equals(List.of("0", "0")) ? List.of() : List.of("offset=" + String.join(",", lengths));
    }

    /** An angle, 0 up to 360. */
    private static String degrees(Map<String, Object> p) {
        double degrees = number(p, "degrees", 0) % 360;
        degrees = Numbers.rounded(degrees < 0 ? degrees + 360 : degrees);
        return "degrees=" + Numbers.text(degrees < 360 ? degrees : 0);
    }

    private static String part(Map<String, Object> p, String name, double standard) {
        return name + "=" + Numbers.text(number(p, name, standard));
    }

    private static String pixels(Map<String, Object> p, double scale) {
        return Numbers.wholePixels(number(p, "width", 0), scale, 1) + "x" + Numbers.wholePixels(number(p, "height", 0), scale, 1);
    }

    /** The radius, and the corners unless these are all. */
    private static List<String> corners(Map<String, Object> p, double scale) {
        List<String> parts = new ArrayList<>();
        if (p.containsKey("radius")) parts.add("radius=" + Numbers.text(Numbers.rounded(number(p, "radius", 0)) * scale));
        else if (p.containsKey("widthFraction")) parts.add(part(p, "widthFraction", 0));
        else if (p.containsKey("heightFraction")) parts.add(part(p, "heightFraction", 0));
        else parts.add("radius=0");
        List<String> all = List.of("topLeft", "topRight", "bottomLeft", "bottomRight");
        List<String> given = all.stream().filter(list(p, "corners")::contains).toList();
        if (p.containsKey("corners") && given.size() < all.size()) parts.add("corners=" + String.join(",", given));
        return parts;
    }

    // Parameters that Halcyon does not know.

    private static String compact(Object value) {
        StringBuilder text = new StringBuilder();
        Json.write(sorted(value), text, number -> Numbers.shortestText(number.doubleValue()));
        return text.toString();
    }

    /** The value, with the members of objects in the order of the UTF-8 bytes of their names. */
    private static Object sorted(Object value) {
        if (value instanceof List<?> elements) return elements.stream().map(ResultKeys::sorted).collect(Collectors.toCollection(ArrayList::new));
        if (!(value instanceof Map<?, ?> members)) return value;
        Map<String, Object> sorted = new TreeMap<>(
            Comparator.comparing((String name) -> name.getBytes(StandardCharsets.UTF_8), Arrays::compareUnsigned));
        members.forEach((name, member) -> sorted.put((String) name, sorted(member)));
        return sorted;
    }
}
