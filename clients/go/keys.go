package halcyon

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/url"
	"sort"
	"strconv"
	"strings"
)

// ResultKeys returns the keys under which Redis stores the results of a job, one for each variant, so that a program can
// look for an image without a request. The job is a [Job], or any other value with its JSON, such as a json.RawMessage.
//
// The job must be valid. The keys of a job with a preset depend on the preset, and are an error.
func ResultKeys(job any) ([]string, error) {
	texts, err := CanonicalTextsOf(job)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(texts.Variants))
	for index, text := range texts.Variants {
		keys[index] = "halcyon:{" + first128Bits(texts.Source) + "}:" + first128Bits(text)
	}
	return keys, nil
}

func first128Bits(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// CanonicalTexts are the texts whose hashes result keys consist of (docs/keys.md).
type CanonicalTexts struct {
	Source   string
	Variants []string // in the order of the variants of the job
}

// fields are the members of a JSON object, without those that are null.
type fields map[string]any

// CanonicalTextsOf returns the canonical texts of a job, with the rules and errors of [ResultKeys].
func CanonicalTextsOf(job any) (texts CanonicalTexts, err error) {
	encoded, err := json.Marshal(job)
	if err != nil {
		return texts, fmt.Errorf("halcyon: %w", err)
	}
	var all map[string]any
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if err := decoder.Decode(&all); err != nil {
		return texts, fmt.Errorf("halcyon: %w", err)
	}
	if all["preset"] != nil {
		return texts, fmt.Errorf("halcyon: the keys depend on the preset of the job")
	}
	// Errors of invalid jobs are panics within this function, because nearly everything can be one.
	defer func() {
		if reason := recover(); reason != nil {
			invalid, is := reason.(invalidField)
			if !is {
				panic(reason)
			}
			err = fmt.Errorf("halcyon: invalid job: %w", invalid.error)
		}
	}()
	texts.Source = sourceText(withoutNull(all))
	for _, fields := range variantFields(all) {
		texts.Variants = append(texts.Variants, variantText(fields))
	}
	return texts, nil
}

type invalidField struct{ error }

func fail(format string, arguments ...any) { panic(invalidField{fmt.Errorf(format, arguments...)}) }

func withoutNull(all map[string]any) fields {
	fields := fields{}
	for name, value := range all {
		if value != nil {
			fields[name] = value
		}
	}
	return fields
}

func (f fields) has(name string) bool { _, exists := f[name]; return exists }

func (f fields) text(name, standard string) string {
	if !f.has(name) {
		return standard
	}
	return textOf(f[name])
}

func (f fields) number(name string, standard float64) float64 {
	if !f.has(name) {
		return standard
	}
	return numberOf(f[name])
}

func (f fields) bool(name string, standard bool) bool {
	if value, is := f[name].(bool); is {
		return value
	}
	return standard
}

func (f fields) list(name string) []any {
	list, _ := f[name].([]any)
	return list
}

func textOf(value any) string {
	text, is := value.(string)
	if !is {
		fail("%v is not a text", value)
	}
	return text
}

func numberOf(value any) float64 {
	number, is := value.(json.Number)
	if !is {
		fail("%v is not a number", value)
	}
	result, err := number.Float64()
	if err != nil {
		fail("%w", err)
	}
	return result
}

func objectOf(value any) fields {
	object, is := value.(map[string]any)
	if !is {
		fail("%v is not an object", value)
	}
	return withoutNull(object)
}

// rule returns the name and the parameters of a value that is a name, or an object of one name and its parameters.
func rule(value any) (string, any) {
	object, is := value.(map[string]any)
	if !is {
		return textOf(value), map[string]any{}
	}
	if len(object) != 1 {
		fail("%v has not one member", value)
	}
	for name, parameters := range object {
		return name, parameters
	}
	return "", nil
}

// The source text.

func sourceText(job fields) string {
	text := "halcyon-source/1\n"
	if job.has("tenant") {
		text += "tenant:" + job.text("tenant", "") + "\n"
	}
	if job.has("headers") {
		text += headerLines(objectOf(job["headers"]))
	}
	return text + sourceLine(job["source"]) + "\n"
}

// headerLines has a line for each header that may change the response of an origin.
func headerLines(headers fields) string {
	values, names := map[string]string{}, []string{}
	for name, value := range headers {
		name = strings.ToLower(name)
		switch name {
		case "traceparent", "tracestate", "baggage", "x-request-id", "x-correlation-id":
			continue
		}
		values[name] = textOf(value)
		names = append(names, name)
	}
	sort.Strings(names)
	lines := ""
	for _, name := range names {
		lines += "header: " + name + "=" + values[name] + "\n"
	}
	return lines
}

// sourceLine identifies a source.
func sourceLine(value any) string {
	text, is := value.(string)
	if is {
		scheme, rest, _ := strings.Cut(text, ":")
		switch strings.ToLower(scheme) {
		case "http", "https":
			return "url:" + canonicalURL(text)
		case "file":
			return fileLine(rest)
		case "s3":
			return objectLine(rest)
		case "data":
			return dataLine(rest)
		}
		if scheme == "initials" {
			return initialsLine(fields{"initials": rest})
		}
		return "custom:" + scheme + " " + rest
	}
	source := objectOf(value)
	switch {
	case source.has("initials"):
		return initialsLine(source)
	case source.has("url") && source.has("cacheKey"):
		return "url:key=" + source.text("cacheKey", "")
	case source.has("url"):
		return sourceLine(source["url"])
	case source.has("base64") && source.has("cacheKey"):
		return "data:key=" + source.text("cacheKey", "")
	case source.has("base64"):
		return hashLine(decodeBase64(source.text("base64", "")))
	case source.has("video"):
		return "video:" + framesText(source) + " " + sourceLine(source["video"])
	}
	name, parameters := rule(value)
	return "custom:" + name + " " + compactJSON(parameters)
}

func framesText(video fields) string {
	if video.has("contactSheet") {
		sheet := objectOf(video["contactSheet"])
		return "sheet " + wholeText(sheet.number("columns", 4)) + "x" + wholeText(sheet.number("rows", 4)) + " " +
			wholeText(sheet.number("width", 320))
	}
	if video.has("preview") {
		preview := objectOf(video["preview"])
		return "preview " + wholeText(preview.number("frames", 10)) + " " + numberText(preview.number("duration", 3)) + " " +
			wholeText(preview.number("width", 320))
	}
	return numberText(video.number("seconds", 0))
}

func canonicalURL(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	at := strings.LastIndexByte(authority, '@') + 1
	user, host := authority[:at], strings.ToLower(authority[at:])
	port := ""
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		host, port = host[:colon], strings.TrimLeft(host[colon+1:], "0")
	}
	if port != "" && port != map[string]string{"http": "80", "https": "443"}[scheme] {
		host += ":" + port
	}
	if !strings.HasPrefix(tail, "/") {
		tail = "/" + tail
	}
	return scheme + "://" + user + host + tail
}

func fileLine(path string) string {
	if strings.HasPrefix(path, "//") {
		_, path, _ = strings.Cut(path[2:], "/")
	}
	line := "file:"
	for _, part := range strings.Split(path, "/") {
		if part = unescape(part); part != "" && part != "." {
			line += "/" + part
		}
	}
	return line
}

func objectLine(rest string) string {
	bucket, rest, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
	key, version, found := strings.Cut(rest, "?")
	line := "s3:" + bucket + "/" + percentEncode(unescape(key), "/")
	if found {
		line += "?" + version
	}
	return line
}

func dataLine(rest string) string {
	kind, encoded, _ := strings.Cut(rest, ",")
	content := unescape(encoded)
	if strings.HasSuffix(strings.ToLower(kind), ";base64") {
		return hashLine(decodeBase64(content))
	}
	return hashLine([]byte(content))
}

func hashLine(content []byte) string {
	sum := sha256.Sum256(content)
	return "data:sha256=" + hex.EncodeToString(sum[:])
}

func decodeBase64(text string) []byte {
	content, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		fail("%w", err)
	}
	return content
}

func unescape(text string) string {
	decoded, err := url.PathUnescape(text)
	if err != nil {
		fail("%w", err)
	}
	return decoded
}

func initialsLine(source fields) string {
	letters := source.text("initials", "")
	hash := fnv.New32a()
	hash.Write([]byte(letters))
	red, green, blue := hslToRGB(float64(hash.Sum32()%12*30), 0.55, 0.42)
	background := colorOf(source.text("background", fmt.Sprintf("#%02x%02x%02x", red, green, blue)))
	channels, _ := parseColor(background)
	square := func(channel int) float64 { return float64(channel*channel) / 65025 }
	foreground := "#ffffffff"
	if 0.2126*square(channels[0])+0.7152*square(channels[1])+0.0722*square(channels[2]) > 0.36 {
		foreground = "#000000ff"
	}
	return "initials:" + letters + " " + background + " " + colorOf(source.text("foreground", foreground))
}

// The variant text.

// variantFields returns the fields of each output. A variant that has a field of the size inherits none of them.
func variantFields(job map[string]any) []fields {
	variants, _ := job["variants"].([]any)
	if len(variants) == 0 {
		variants = []any{map[string]any{}}
	}
	outputs := make([]fields, len(variants))
	for index, value := range variants {
		variant, is := value.(map[string]any)
		if !is {
			fail("%v is not a variant", value)
		}
		output, inherits := map[string]any{}, true
		for name := range variant {
			inherits = inherits && !isSize(name)
		}
		for name, value := range job {
			if inherits || !isSize(name) {
				output[name] = value
			}
		}
		for name, value := range variant {
			output[name] = value
		}
		outputs[index] = withoutNull(output)
	}
	return outputs
}

func isSize(name string) bool {
	return name == "width" || name == "height" || name == "sizer" || name == "sizeForDisplay"
}

// goal returns what decides the size: display, width, height, custom or natural.
func goal(output fields) string {
	switch {
	case !output.bool("sizeForDisplay", true):
		return "natural"
	case output.has("width") && output.has("height"):
		return "display"
	case output.has("width"):
		return "width"
	case output.has("height"):
		return "height"
	case !output.has("sizer"):
		return "natural"
	}
	switch name, _ := rule(output["sizer"]); name {
	case "natural":
		return "natural"
	case "aspectScaleDownByWidth":
		return "width"
	case "aspectScaleDownByHeight":
		return "height"
	}
	return "custom"
}

func sizeText(output fields) string {
	scale := rounded(output.number("screenScale", 1))
	switch goal := goal(output); {
	case goal == "natural":
		return goal
	case goal == "display":
		return numberText(length(output.number("width", 0))) + "x" + numberText(length(output.number("height", 0))) +
			"@" + numberText(scale) + " " + modeText(output)
	case output.has(goal):
		return goal + " " + numberText(math.Max(1, math.Round(length(output.number(goal, 0))))*scale)
	case goal == "custom":
		name, parameters := rule(output["sizer"])
		return "custom " + name + " " + compactJSON(parameters)
	default:
		_, limit := rule(output["sizer"])
		return goal + " " + numberText(length(numberOf(limit)))
	}
}

// modeText returns the content mode and what is done with excess.
func modeText(output fields) string {
	mode, options := output.text("contentMode", "scaleAspectFill"), output.text("scaleOptions", "")
	switch mode {
	case "fill", "redraw":
		mode = "scaleToFill"
	case "contain":
		mode = "scaleAspectFit"
	case "cover":
		mode = "scaleAspectFill"
	}
	if mode == "scaleAspectFit" && strings.HasPrefix(options, "fitCropsExcess") {
		mode += " cropsExcess"
	}
	if mode == "scaleAspectFill" && strings.HasSuffix(strings.ToLower(options), "fillleavesexcess") {
		mode += " leavesExcess"
	}
	if position := output.text("position", "center"); mode == "scaleAspectFit" && position != "center" {
		mode += " " + position
	}
	return mode
}

// trimText returns "" if margins are kept.
func trimText(output fields) string {
	parameters := fields{}
	switch given := output["trim"].(type) {
	case nil:
		return ""
	case bool:
		if !given {
			return ""
		}
	default:
		parameters = objectOf(given)
	}
	parts := []string{wholeText(parameters.number("tolerance", 10))}
	if parameters.has("background") {
		parts = append(parts, "background="+colorOf(parameters.text("background", "")))
	}
	if fuzz := parameters.number("fuzz", 0); rounded(fuzz) > 0 {
		parts = append(parts, "fuzz="+numberText(fuzz))
	}
	return strings.Join(parts, " ")
}

// gravityText returns "" for the middle of what is used.
func gravityText(output fields, crops bool) string {
	given := output["gravity"]
	if given == nil || given == "center" || goal(output) != "display" || modeText(output) != "scaleAspectFill" {
		return ""
	}
	if text := detectedText(given); text != "" {
		return text
	}
	if text, is := given.(string); is {
		return text
	}
	point := objectOf(given)
	text := numberText(point.number("x", 0)) + "," + numberText(point.number("y", 0))
	if text == "0.5,0.5" && !crops {
		return ""
	}
	return text
}

// cropText returns "" for the whole image.
func cropText(output fields) string {
	if !output.has("cropRect") {
		return ""
	}
	rect := objectOf(output["cropRect"])
	sides := make([]string, 4)
	for index, side := range []string{"x", "y", "width", "height"} {
		// Adding 0 turns -0 into 0.
		sides[index] = number(rect.number(side, 0) + 0)
	}
	text := strings.Join(sides, ",")
	if sides[2] == "0" || sides[3] == "0" {
		return ""
	}
	if rect.text("unit", "") == "pixels" {
		return text + " pixels"
	}
	if text == "0,0,1,1" {
		return ""
	}
	return text
}

// facts are the fields of an output on which facts about the source depend.
var facts = []string{"page", "tolerance", "blurhash", "dominantColor", "palette", "thumbhash", "phash", "faces"}

// detector is the name and version of the detector that Halcyon provides (images.detectorName).
const detector = "opencv-centerface/1"

// detectedText returns the text of a gravity toward faces or objects, or "" for another one.
func detectedText(gravity any) string {
	given := fields{"detect": gravity}
	if _, isText := gravity.(string); !isText {
		given = objectOf(gravity)
	}
	kind := given.text("detect", "")
	if kind != "faces" && kind != "objects" {
		return ""
	}
	fallback := "attention"
	switch value := given["fallback"].(type) {
	case nil:
	case string:
		fallback = value
	default:
		point := objectOf(value)
		fallback = numberText(point.number("x", 0)) + "," + numberText(point.number("y", 0))
	}
	return kind + " confidence=" + numberText(given.number("confidence", 0.5)) + " fallback=" + fallback
}

// detects returns true if a detector is needed.
func detects(output fields) bool {
	for _, steps := range []string{"before", "processors"} {
		for _, step := range output.list(steps) {
			if name, _ := rule(step); name == "blurFaces" || name == "pixelateFaces" {
				return true
			}
		}
	}
	text := gravityText(output, true)
	return output.bool("faces", false) || strings.HasPrefix(text, "faces ") || strings.HasPrefix(text, "objects ")
}

// quantizeText returns "" without a palette.
func quantizeText(output fields) string {
	parts := fields{}
	switch value := output["quantize"].(type) {
	case nil:
		return ""
	case bool:
		if !value {
			return ""
		}
	case map[string]any:
		parts = objectOf(value)
	default:
		parts["colors"] = value
	}
	return wholeText(parts.number("colors", 256)) + " dither=" + numberText(parts.number("dither", 1))
}

func variantText(output fields) string {
	lines := []string{"halcyon-variant/1"}
	info := output["info"]
	hasInfo := info != nil && info != false
	location := false
	if hasInfo {
		if info != true {
			location = objectOf(info).bool("location", false)
		}
		all := output
		output = fields{}
		for _, name := range facts {
			if all.has(name) {
				output[name] = all[name]
			}
		}
	}
	add := func(condition bool, line string) {
		if condition {
			lines = append(lines, line)
		}
	}
	goal, crop, trim := goal(output), cropText(output), trimText(output)
	gravity := gravityText(output, crop != "" || trim != "")
	interpolation := output.text("interpolationQuality", "default")
	background := colorOf(output.text("background", "transparent"))
	scale := rounded(output.number("screenScale", 1))

	add(output.number("page", 1) != 1, "page="+wholeText(output.number("page", 1)))
	for _, step := range output.list("before") {
		add(true, "before="+processorText(step, scale))
	}
	add(crop != "", "crop="+crop)
	add(trim != "", "trim="+trim)
	add(true, "size="+sizeText(output))
	add(gravity != "", "gravity="+gravity)
	add(goal == "display" && !output.bool("upscale", true), "upscale=false")
	add((goal == "width" || goal == "height") && output.bool("upscale", false), "upscale=true")
	add(interpolation != "default", "interpolation="+interpolation)
	add(output.bool("linearLight", false), "linear-light")
	add(background != transparent, "background="+background)
	for _, step := range output.list("processors") {
		add(true, "processor="+processorText(step, scale))
	}
	format := output.text("format", "auto")
	add(format != "auto", "format="+format)
	if target, ok := output["quality"].(map[string]any); ok {
		add(true, "quality=target "+numberText(objectOf(target).number("target", 0)))
	} else {
		add(output.has("quality"), "quality="+wholeText(output.number("quality", 0)))
	}
	add(output.has("maximumBytes"), "maximum-bytes="+wholeText(output.number("maximumBytes", 0)))
	add(output.has("maximumBytes") && output.bool("allowResize", false), "allow-resize")
	add(output.bool("lossless", false), "lossless")
	add(output.bool("nearLossless", false), "near-lossless")
	sampling := output.text("chromaSubsampling", "auto")
	add(sampling != "auto", "chroma="+sampling)
	depth := output.number("bitDepth", 8)
	add(depth != 8, "bit-depth="+wholeText(depth))
	quantize := quantizeText(output)
	add(quantize != "", "quantize="+quantize)
	add(output.has("effort"), "effort="+wholeText(output.number("effort", 0)))
	add(output.bool("progressive", false), "progressive")
	add(!output.bool("stripMetadata", true), "metadata")
	add(output.bool("keepProfile", false), "profile")
	profile := output.text("profile", "srgb")
	add(profile != "srgb", "profile="+profile)
	add(output.has("frames"), "frames="+wholeText(output.number("frames", 0)))
	add(output.has("tolerance"), "tolerance="+output.text("tolerance", ""))
	add(output.bool("blurhash", false), "blurhash")
	add(output.bool("dominantColor", false), "dominant-color")
	add(output.bool("palette", false), "palette")
	add(output.bool("thumbhash", false), "thumbhash")
	add(output.bool("phash", false), "phash")
	add(output.bool("faces", false), "faces")
	add(detects(output), "detector="+detector)
	add(hasInfo && !location, "info")
	add(hasInfo && location, "info=location")
	return strings.Join(lines, "\n") + "\n"
}

// Processors.

const transparent = "#00000000"

func processorText(step any, scale float64) string {
	name, given := rule(step)
	text, known := processorTexts[name]
	if !known {
		return name + " " + compactJSON(given)
	}
	parameters := fields{}
	if given != nil {
		parameters = objectOf(given)
	}
	return strings.Join(append([]string{name}, text(parameters, scale)...), " ")
}

// processorTexts return the parts of a line after the name, by name.
var processorTexts = map[string]func(p fields, scale float64) []string{
	"roundCorner": func(p fields, scale float64) []string {
		parts := cornerParts(p, scale)
		if background := colorOf(p.text("background", "transparent")); background != transparent {
			parts = append(parts, "background="+background)
		}
		return parts
	},
	"resize": func(p fields, scale float64) []string { return []string{pixelSize(p, scale), p.text("mode", "none")} },
	"crop": func(p fields, scale float64) []string {
		anchor := fields{"x": json.Number("0.5"), "y": json.Number("0.5")}
		if p.has("anchor") {
			anchor = objectOf(p["anchor"])
		}
		return []string{pixelSize(p, scale), numberPart(anchor, "x", 0), numberPart(anchor, "y", 0)}
	},
	"blur": func(p fields, scale float64) []string {
		return []string{"radius=" + numberText(length(p.number("radius", 0))*scale)}
	},
	"tint": func(p fields, _ float64) []string { return []string{"color=" + colorOf(p.text("color", ""))} },
	"overlay": func(p fields, _ float64) []string {
		if p.has("color") {
			return []string{"color=" + colorOf(p.text("color", "")), numberPart(p, "fraction", 0.5)}
		}
		return append(append([]string{numberPart(p, "opacity", 1)}, blendParts(p)...), "source="+sourceLine(p["source"]))
	},
	"blend": func(p fields, _ float64) []string {
		return []string{
			p.text("mode", ""), numberPart(p, "opacity", 1), "background=" + colorOf(p.text("background", "")),
		}
	},
	"colorControls": func(p fields, _ float64) []string {
		return []string{
			numberPart(p, "brightness", 0), numberPart(p, "contrast", 1), numberPart(p, "saturation", 1),
			numberPart(p, "exposure", 0),
		}
	},
	"blackWhite": func(fields, float64) []string { return nil },
	"border": func(p fields, scale float64) []string {
		return append([]string{
			"width=" + numberText(length(p.number("width", 0))*scale), "color=" + colorOf(p.text("color", "black")),
		}, cornerParts(p, scale)...)
	},
	"downsample": func(p fields, scale float64) []string { return []string{pixelSize(p, scale)} },
	"sharpen": func(p fields, _ float64) []string {
		return []string{numberPart(p, "radius", 0.5), numberPart(p, "amount", 1)}
	},
	"pixelate": func(p fields, scale float64) []string {
		return []string{"size=" + wholePixels(p.number("size", 0), scale, 1)}
	},
	"blurFaces": func(p fields, _ float64) []string {
		return []string{numberPart(p, "amount", 0.15), numberPart(p, "margin", 0.2), numberPart(p, "confidence", 0.3)}
	},
	"pixelateFaces": func(p fields, _ float64) []string {
		return []string{"cells=" + wholeText(p.number("cells", 8)), numberPart(p, "margin", 0.2), numberPart(p, "confidence", 0.3)}
	},
	"watermark": func(p fields, scale float64) []string {
		parts := []string{p.text("position", "bottomRight"), "margin=" + wholePixels(p.number("margin", 0), scale, 0)}
		if p.has("widthFraction") {
			parts = append(parts, "width="+numberText(length(p.number("widthFraction", 0))))
		}
		if factor := p.number("scale", 1); rounded(factor) != 1 {
			parts = append(parts, "scale="+numberText(length(factor)))
		}
		parts = append(append(parts, offsetParts(p, scale)...), numberPart(p, "opacity", 1))
		parts = append(parts, blendParts(p)...)
		if p.bool("tiled", false) {
			parts = append(parts, "tiled")
		}
		return append(parts, "source="+sourceLine(p["source"]))
	},
	"rotate": func(p fields, _ float64) []string {
		return []string{degreesPart(p), "background=" + colorOf(p.text("background", "transparent"))}
	},
	"flip": func(p fields, _ float64) []string { return []string{p.text("direction", "horizontal")} },
	"pad": func(p fields, scale float64) []string {
		var parts []string
		for _, side := range []string{"top", "right", "bottom", "left"} {
			parts = append(parts, side+"="+wholePixels(p.number(side, p.number("all", 0)), scale, 0))
		}
		if fill := p.text("fill", "color"); fill != "color" {
			return append(parts, "fill="+fill)
		}
		return append(parts, "color="+colorOf(p.text("color", "transparent")))
	},
	"text": textParts,
	"mask": func(p fields, _ float64) []string {
		if p.has("shape") {
			return []string{"shape=" + p.text("shape", "")}
		}
		return []string{"source=" + sourceLine(p["source"])}
	},
	"hue":   func(p fields, _ float64) []string { return []string{degreesPart(p)} },
	"gamma": func(p fields, _ float64) []string { return []string{numberPart(p, "gamma", 2.2)} },
	"normalize": func(p fields, _ float64) []string {
		return []string{numberPart(p, "lower", 1), numberPart(p, "upper", 99)}
	},
	"duotone": func(p fields, _ float64) []string {
		return []string{"dark=" + colorOf(p.text("dark", "")), "light=" + colorOf(p.text("light", ""))}
	},
}

// textParts returns the parts of a text. The text itself is last, with backslashes and line feeds escaped.
func textParts(p fields, scale float64) []string {
	parts := []string{p.text("position", "center"), "margin=" + wholePixels(p.number("margin", 0), scale, 0)}
	parts = append(parts, offsetParts(p, scale)...)
	if p.has("size") {
		parts = append(parts, "size="+numberText(math.Max(1, rounded(length(p.number("size", 0))*scale))))
	}
	for _, side := range []string{"width", "height"} {
		if p.has(side) {
			parts = append(parts, side+"="+wholePixels(p.number(side, 0), scale, 1))
		}
	}
	parts = append(parts, "align="+p.text("align", "left"), "color="+colorOf(p.text("color", "black")))
	if outline := wholePixels(p.number("outlineWidth", 0), scale, 0); outline != "0" {
		parts = append(parts, "outline="+outline, "outlineColor="+colorOf(p.text("outlineColor", "white")))
	}
	parts = append(parts, numberPart(p, "opacity", 1))
	for _, face := range []string{"bold", "italic"} {
		if p.bool(face, false) {
			parts = append(parts, face)
		}
	}
	lines := strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(p.text("text", ""))
	return append(parts, "font="+p.text("font", ""), "text="+lines)
}

// blendParts returns the blend mode, unless it is normal.
func blendParts(p fields) []string {
	if mode := p.text("mode", "normal"); mode != "normal" {
		return []string{"mode=" + mode}
	}
	return nil
}

// offsetParts returns the offset in whole pixels, unless it is zero.
func offsetParts(p fields, scale float64) []string {
	if !p.has("offset") {
		return nil
	}
	given := objectOf(p["offset"])
	var lengths [2]string
	for index, name := range []string{"x", "y"} {
		points := given.number(name, 0)
		lengths[index] = wholePixels(math.Abs(points), scale, 0)
		if points < 0 && lengths[index] != "0" {
			lengths[index] = "-" + lengths[index]
		}
	}
	if lengths == [2]string{"0", "0"} {
		return nil
	}
	return []string{"offset=" + lengths[0] + "," + lengths[1]}
}

// degreesPart returns an angle, 0 up to 360.
func degreesPart(p fields) string {
	degrees := math.Mod(p.number("degrees", 0), 360)
	if degrees < 0 {
		degrees += 360
	}
	if degrees = rounded(degrees); degrees >= 360 {
		degrees = 0
	}
	return "degrees=" + numberText(degrees)
}

// cornerParts returns the radius, and the corners unless these are all.
func cornerParts(p fields, scale float64) []string {
	radius := "radius=0"
	switch {
	case p.has("heightFraction"):
		radius = "heightFraction=" + numberText(p.number("heightFraction", 0))
	case p.has("widthFraction"):
		radius = "widthFraction=" + numberText(p.number("widthFraction", 0))
	case p.has("radius"):
		radius = "radius=" + numberText(rounded(p.number("radius", 0))*scale)
	}
	var corners []string
	for _, corner := range []string{"topLeft", "topRight", "bottomLeft", "bottomRight"} {
		for _, given := range p.list("corners") {
			if given == corner {
				corners = append(corners, corner)
				break
			}
		}
	}
	if !p.has("corners") || len(corners) == 4 {
		return []string{radius}
	}
	return []string{radius, "corners=" + strings.Join(corners, ",")}
}

func pixelSize(p fields, scale float64) string {
	return wholePixels(p.number("width", 0), scale, 1) + "x" + wholePixels(p.number("height", 0), scale, 1)
}

func numberPart(p fields, name string, standard float64) string {
	return name + "=" + numberText(p.number(name, standard))
}

func colorOf(text string) string {
	color, err := canonicalColor(text)
	if err != nil {
		panic(invalidField{err})
	}
	return color
}

// compactJSON writes parameters that Halcyon does not know. Whole numbers are written as such.
func compactJSON(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(canonicalNumbers(value)); err != nil {
		fail("%w", err)
	}
	// Go escapes two characters that JSON does not require.
	return strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029").Replace(strings.TrimSuffix(text.String(), "\n"))
}

func canonicalNumbers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(value))
		for name, member := range value {
			copied[name] = canonicalNumbers(member)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for index, element := range value {
			copied[index] = canonicalNumbers(element)
		}
		return copied
	case json.Number:
		number := numberOf(value)
		if number == math.Trunc(number) && math.Abs(number) < 1<<53 {
			return json.Number(strconv.FormatInt(int64(number), 10))
		}
		if magnitude := math.Abs(number); magnitude < 1e-4 || magnitude >= 1e16 {
			return json.Number(strconv.FormatFloat(number, 'e', -1, 64))
		}
		return json.Number(strconv.FormatFloat(number, 'f', -1, 64))
	}
	return value
}

// Numbers, which have a precision of six decimals.

func rounded(number float64) float64 { return math.Round(number*1_000_000) / 1_000_000 }

// length rounds a number above zero, which stays above zero.
func length(number float64) float64 { return math.Max(rounded(number), 0.000001) }

// numberText writes a number without trailing zeros and without an exponent.
func numberText(value float64) string {
	millionths := math.Round(value * 1_000_000)
	text := fmt.Sprintf("%07.0f", math.Abs(millionths))
	text = strings.TrimRight(text[:len(text)-6]+"."+text[len(text)-6:], "0")
	if text = strings.TrimSuffix(text, "."); millionths < 0 {
		text = "-" + text
	}
	return text
}

func wholeText(number float64) string { return strconv.FormatFloat(math.Trunc(number), 'f', 0, 64) }

// wholePixels returns a length in points as whole pixels.
func wholePixels(points, scale, least float64) string {
	return wholeText(math.Round(rounded(math.Max(least, math.Round(rounded(points))) * scale)))
}
