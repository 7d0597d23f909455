package halcyon

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Job is an image to load, and the outputs to make of it. Fields with their zero value are absent from its JSON, and
// have the defaults of the schema.
//
// json.Marshal encodes a job as the schema defines it, so that any Kafka producer can send it. Messages in Kafka should
// have the source as their key, and jobs need no id there.
type Job struct {
	// Source is the image to load.
	Source Source
	// Alternatives are loaded, in this order, if Source fails; at most 8.
	Alternatives []Source
	// Fallback is the picture to deliver if all of them fail, or [NoFallback]. Default: the setting of the cluster.
	Fallback Source
	// Output is the only output, or has the fields that all Variants have in common.
	Output
	// Variants are several outputs of one source; at most 16.
	Variants []Output
	// Partial is true if the job is ready with the variants that can be made when others fail.
	Partial bool
	// ID is the name of the job, at most 128 characters. The client generates one if it is empty.
	ID string
	// MaxAge is the number of seconds for which the result is stored. 0 follows the response of the origin; below 0,
	// nothing is stored.
	MaxAge float64
	// Cache has the caches that the job uses.
	Cache *Cache
	// Delivery is the way in which the bytes are delivered.
	Delivery Delivery
	// Priority is the lane, for jobs that are submitted over HTTP. In Kafka, the topic is the lane.
	Priority Priority
	// Prefetch is true to load the source into the source cache only. No image is made.
	Prefetch bool
	// Refresh says when the results are rendered again.
	Refresh Refresh
	// NotBefore is the time at which the job starts at the earliest.
	NotBefore Time
	// Deadline is the time after which the job fails as expired.
	Deadline Time
	// Slot is the place in which the image is shown. Of several jobs for one slot, only the newest is done.
	Slot string
	// Generation orders the jobs for one slot: a higher number is newer.
	Generation *int64
	// Placeholder, AltText and Metadata are JSON values that events return unchanged; at most 16 KiB each.
	Placeholder, AltText, Metadata any
	// Tags are those by which the results can be purged.
	Tags []string
	// Webhook is a URL, or a name from the settings of the workers, that is called when the job ends.
	Webhook string
	// Headers are sent with the requests for the source.
	Headers map[string]string
	// Tenant owns the results.
	Tenant string
	// Preset names the preset whose fields the job has. Output then has only fields that the preset allows.
	Preset PresetName
	// Batch is the batch of a job that is sent to Kafka. Jobs in batches over HTTP need none.
	Batch *BatchPosition
	// Extra has fields of a later version of the schema.
	Extra map[string]any
}

// Output is one output of a job: its size, processing and file format.
type Output struct {
	// Name is the name of a variant in events and upload URLs, unique in the job; only for outputs in Job.Variants.
	Name string `json:"name,omitempty"`
	// Width and Height are the display size in points. If only one is set, the other follows the aspect ratio.
	Width  float64 `json:"width,omitempty"`
	Height float64 `json:"height,omitempty"`
	// ScreenScale is the number of pixels per point, 1 to 4.
	ScreenScale float64 `json:"screenScale,omitempty"`
	// ContentMode is the placement of the image in its display.
	ContentMode ContentMode `json:"contentMode,omitempty"`
	// ScaleOptions is the treatment of the excess where aspect ratios differ.
	ScaleOptions ScaleOptions `json:"scaleOptions,omitempty"`
	// Position is the position of an image that ScaleAspectFit places in a display with another aspect ratio. Default: Center.
	Position ContentMode `json:"position,omitempty"`
	// CropRect is the part of the image that is used.
	CropRect *CropRect `json:"cropRect,omitempty"`
	// Trim removes margins before the image is sized.
	Trim *Trim `json:"trim,omitempty"`
	// Gravity is the part that is kept when the image is cropped.
	Gravity Gravity `json:"gravity,omitempty"`
	// SizeForDisplay is false for no sizing at all. Default: true.
	SizeForDisplay *bool `json:"sizeForDisplay,omitempty"`
	// Sizer is a rule for the size that replaces Width and Height.
	Sizer Sizer `json:"sizer,omitempty"`
	// Upscale says whether the image may be enlarged. Default: true with Width and Height, otherwise false.
	Upscale *bool `json:"upscale,omitempty"`
	// InterpolationQuality is the interpolation of pixels.
	InterpolationQuality Interpolation `json:"interpolationQuality,omitempty"`
	// LinearLight is true to average light, and not its encoding in sRGB, when the image is resized.
	LinearLight bool `json:"linearLight,omitempty"`
	// Background is the CSS color of the area that the image does not cover.
	Background string `json:"background,omitempty"`
	// Before are the steps that the image goes through before it is cropped and sized, in this order.
	Before []Processor `json:"before,omitempty"`
	// Processors are the steps that the sized image goes through, in this order.
	Processors []Processor `json:"processors,omitempty"`
	// Format is the format of the file. Default: that of the source.
	Format Format `json:"format,omitempty"`
	// Quality is the quality of lossy formats, 1 to 100.
	Quality int `json:"-"`
	// TargetSimilarity is the similarity (SSIM) to the picture before encoding that the lowest sufficient quality is
	// searched for, 0.5 to 0.9999. It takes the place of Quality.
	TargetSimilarity float64 `json:"-"`
	// MaximumBytes is the maximum size of the file.
	MaximumBytes int `json:"maximumBytes,omitempty"`
	// AllowResize is true if the image may become smaller to have at most MaximumBytes.
	AllowResize bool `json:"allowResize,omitempty"`
	// NearLossless is true for lossless WebP after a slight preprocessing.
	NearLossless bool `json:"nearLossless,omitempty"`
	// ChromaSubsampling is the resolution of colors in JPEG and AVIF: "auto", "4:4:4" or "4:2:0".
	ChromaSubsampling string `json:"chromaSubsampling,omitempty"`
	// BitDepth is the number of bits per sample: 16 for PNG, TIFF and JPEG XL, 12 for AVIF. Default: 8.
	BitDepth int `json:"bitDepth,omitempty"`
	// Quantize reduces a PNG or GIF to few colors.
	Quantize *Quantization `json:"quantize,omitempty"`
	// Profile is the color space of the output: "srgb" or "p3".
	Profile string `json:"profile,omitempty"`
	// Lossless is true for lossless encoding where the format supports it.
	Lossless bool `json:"lossless,omitempty"`
	// Effort is the effort of the encoder, 0 to 9.
	Effort *int `json:"effort,omitempty"`
	// Progressive is true for a progressive JPEG or an interlaced PNG.
	Progressive bool `json:"progressive,omitempty"`
	// StripMetadata is false to keep EXIF, XMP and IPTC. Default: true.
	StripMetadata *bool `json:"stripMetadata,omitempty"`
	// KeepProfile is true to keep the colors and the ICC profile of the source.
	KeepProfile bool `json:"keepProfile,omitempty"`
	// Page is the page of a PDF or TIFF, or the first frame of an animation, from 1.
	Page int `json:"page,omitempty"`
	// Frames is the maximum number of frames of an animation.
	Frames int `json:"frames,omitempty"`
	// Tolerance is the damage to a source that is tolerated.
	Tolerance Tolerance `json:"tolerance,omitempty"`
	// BlurHash, DominantColor, Palette, ThumbHash and PHash are true if the event contains them.
	BlurHash      bool `json:"blurhash,omitempty"`
	DominantColor bool `json:"dominantColor,omitempty"`
	Palette       bool `json:"palette,omitempty"`
	ThumbHash     bool `json:"thumbhash,omitempty"`
	PHash         bool `json:"phash,omitempty"`
	Faces         bool `json:"faces,omitempty"`
	// Info requests facts about the source instead of an image.
	Info *InfoOptions `json:"info,omitempty"`
	// Reset has the JSON names of fields of the job that a variant does not inherit, but resets to the defaults.
	Reset []string `json:"-"`
}

// Trim is the detection of margins. The zero value has the defaults.
type Trim struct {
	// Tolerance is the difference to the background up to which a pixel belongs to the margin, 0 to 254 levels. Default: 10.
	Tolerance *int `json:"tolerance,omitempty"`
	// Background is the CSS color of the margin. Default: that of the pixel in the top left corner.
	Background string `json:"background,omitempty"`
	// Fuzz is the share of the pixels of a row or a column that may differ in a margin, 0 to 0.5.
	Fuzz float64 `json:"fuzz,omitempty"`
}

// InfoOptions are the options of facts about a source.
type InfoOptions struct {
	Location bool `json:"location,omitempty"` // includes the location where the picture was taken
}

// Quantization is the reduction of an image to a palette of few colors.
type Quantization struct {
	// Colors is the maximum number of colors: 2, 4, 16 or 256. Default: 256.
	Colors int `json:"colors,omitempty"`
	// Dither is the amount of error diffusion, 0 to 1. Default: 1.
	Dither *float64 `json:"dither,omitempty"`
}

// Ptr returns a pointer to a value, for the optional fields of jobs.
func Ptr[T any](value T) *T { return &value }

// MarshalJSON encodes an output as the schema defines it.
func (o Output) MarshalJSON() ([]byte, error) {
	type fields Output
	members := make(map[string]any, len(o.Reset)+1)
	for _, name := range o.Reset {
		members[name] = nil
	}
	switch {
	case o.TargetSimilarity != 0:
		members["quality"] = map[string]float64{"target": o.TargetSimilarity}
	case o.Quality != 0:
		members["quality"] = o.Quality
	}
	return merged(members, fields(o))
}

// MarshalJSON encodes a job as the schema defines it.
func (j Job) MarshalJSON() ([]byte, error) {
	return merged(j.Extra, j.Output, struct {
		Source       Source            `json:"source,omitempty"`
		Alternatives []Source          `json:"alternatives,omitempty"`
		Fallback     Source            `json:"fallback,omitempty"`
		Variants     []Output          `json:"variants,omitempty"`
		Partial      bool              `json:"partial,omitempty"`
		ID           string            `json:"id,omitempty"`
		MaxAge       float64           `json:"maxAge,omitempty"`
		Cache        *Cache            `json:"cache,omitempty"`
		Delivery     Delivery          `json:"delivery,omitempty"`
		Priority     Priority          `json:"priority,omitempty"`
		Prefetch     bool              `json:"prefetch,omitempty"`
		Refresh      Refresh           `json:"refresh,omitempty"`
		NotBefore    Time              `json:"notBefore,omitempty"`
		Deadline     Time              `json:"deadline,omitempty"`
		Slot         string            `json:"slot,omitempty"`
		Generation   *int64            `json:"generation,omitempty"`
		Placeholder  any               `json:"placeholder,omitempty"`
		AltText      any               `json:"altText,omitempty"`
		Metadata     any               `json:"metadata,omitempty"`
		Tags         []string          `json:"tags,omitempty"`
		Webhook      string            `json:"webhook,omitempty"`
		Headers      map[string]string `json:"headers,omitempty"`
		Tenant       string            `json:"tenant,omitempty"`
		Preset       PresetName        `json:"preset,omitempty"`
		Batch        *BatchPosition    `json:"batch,omitempty"`
	}{
		j.Source, j.Alternatives, j.Fallback, j.Variants, j.Partial, j.ID, j.MaxAge, j.Cache, j.Delivery, j.Priority,
		j.Prefetch, j.Refresh, j.NotBefore, j.Deadline, j.Slot, j.Generation, j.Placeholder, j.AltText, j.Metadata,
		j.Tags, j.Webhook, j.Headers, j.Tenant, j.Preset, j.Batch,
	})
}

// merged returns the members of several values that are encoded as objects, as one object.
func merged(values ...any) ([]byte, error) {
	var object bytes.Buffer
	for _, value := range values {
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if len(encoded) <= 2 || encoded[0] != '{' {
			continue // An empty object, or the null of a nil map.
		}
		if object.Len() > 0 {
			object.WriteByte(',')
		}
		object.Write(encoded[1 : len(encoded)-1])
	}
	return []byte("{" + object.String() + "}"), nil
}

// Source is the image that a job loads: a URL (https:, http:, file:, s3: or data:), or "initials:JD" for an avatar. The
// functions that return a Source create the others.
type Source string

// NoFallback is the value of Job.Fallback for a job that fails regardless of the setting of the cluster.
const NoFallback Source = "false"

// URLWithCacheKey returns the source for an image at a URL that may change, such as a presigned one. URLs with equal keys
// lead to equal images.
func URLWithCacheKey(url, key string) Source {
	return Source(object(members{"url": url, "cacheKey": key}))
}

// ImageBytes returns the source for an image that is sent with the job. It is identified by its SHA-256, or by the key
// unless that is "".
func ImageBytes(file []byte, cacheKey string) Source {
	return Source(object(members{
		"base64": base64.StdEncoding.EncodeToString(file), "cacheKey": optional(cacheKey),
	}))
}

// Initials returns the source for an avatar with these letters, in CSS colors. For an empty color, Halcyon chooses one.
func Initials(letters, background, foreground string) Source {
	return Source(object(members{
		"initials": letters, "background": optional(background), "foreground": optional(foreground),
	}))
}

// VideoFrame returns the source for the frame of a video, a number of seconds after its start.
func VideoFrame(video Source, seconds float64) Source {
	return Source(object(members{"video": video, "seconds": seconds}))
}

// VideoContactSheet returns the source for frames of a video at equal distances, in rows. The width is that of each in
// pixels.
func VideoContactSheet(video Source, columns, rows, width int) Source {
	return Source(object(members{
		"video": video, "contactSheet": map[string]int{"columns": columns, "rows": rows, "width": width},
	}))
}

// VideoPreview returns the source for an animation of frames of a video at equal distances. The duration is in seconds,
// the width in pixels.
func VideoPreview(video Source, frames int, duration float64, width int) Source {
	return Source(object(members{
		"video": video, "preview": map[string]any{"frames": frames, "duration": duration, "width": width},
	}))
}

// MarshalJSON encodes the source.
func (s Source) MarshalJSON() ([]byte, error) {
	if s == NoFallback {
		return []byte("false"), nil
	}
	return encodeText(string(s))
}

// Cache has the caches that a job uses.
type Cache struct {
	// Memory and Source are false to use neither stored results nor stored sources. Default: true.
	Memory *bool `json:"memory,omitempty"`
	Source *bool `json:"source,omitempty"`
	// Store is the use of the persistent result store.
	Store StoreUse `json:"store,omitempty"`
	// Reload ignores what is stored. OnlyIfCached sends no request to an origin.
	Reload       bool `json:"reload,omitempty"`
	OnlyIfCached bool `json:"onlyIfCached,omitempty"`
}

// StoreUse is the use of the persistent result store by a job.
type StoreUse string

// The uses of the result store: after the event, not at all, or before the event.
const (
	StoreAllowed  StoreUse = "true"
	StoreExcluded StoreUse = "false"
	StoreRequired StoreUse = "required"
)

// MarshalJSON encodes the use.
func (s StoreUse) MarshalJSON() ([]byte, error) {
	if s == StoreAllowed || s == StoreExcluded {
		return []byte(s), nil
	}
	return json.Marshal(string(s))
}

// Delivery is the way in which the bytes of a result are delivered.
type Delivery string

// The deliveries under the key in the event, and in the event itself.
const (
	DeliverReference Delivery = "reference"
	DeliverInline    Delivery = "inline"
)

// DeliverPut delivers by HTTP PUT to a URL before the event. The URL may be a template with the placeholders {variant},
// {index}, {width}, {height}, {format} and {key}.
func DeliverPut(url string) Delivery { return Delivery(object(members{"put": url})) }

// DeliverPuts delivers each variant by HTTP PUT to a URL of its own. The keys are the names of the variants; a variant
// without a name has its index.
func DeliverPuts(urls map[string]string) Delivery { return Delivery(object(members{"put": urls})) }

// MarshalJSON encodes the delivery.
func (d Delivery) MarshalJSON() ([]byte, error) { return encodeText(string(d)) }

// Priority is the lane of a job.
type Priority string

// The lanes.
const (
	PriorityHigh   Priority = "high"
	PriorityNormal Priority = "normal"
	PriorityLow    Priority = "low"
)

// Time is a time at which a job starts or expires.
type Time string

// After returns the time that is a duration after the job was accepted or, for a deadline, after Job.NotBefore.
func After(duration time.Duration) Time { return Time(number(duration.Seconds())) }

// At returns a moment, to the second.
func At(moment time.Time) Time { return Time(moment.UTC().Format(time.RFC3339)) }

// MarshalJSON encodes the time.
func (t Time) MarshalJSON() ([]byte, error) { return encodeNumberOrText(string(t)) }

// Refresh says when results are rendered again while jobs ask for them.
type Refresh string

// RefreshBeforeExpiry renders results again shortly before they expire.
const RefreshBeforeExpiry Refresh = "beforeExpiry"

// RefreshEvery renders results again at an interval of 10 s to one year.
func RefreshEvery(interval time.Duration) Refresh { return Refresh(number(interval.Seconds())) }

// MarshalJSON encodes the rule.
func (r Refresh) MarshalJSON() ([]byte, error) { return encodeNumberOrText(string(r)) }

// PresetName is the preset of a job.
type PresetName string

// PresetVersion returns a preset in this version or a newer one.
func PresetVersion(name string, version int64) PresetName {
	return PresetName(object(members{"name": name, "version": version}))
}

// MarshalJSON encodes the preset.
func (p PresetName) MarshalJSON() ([]byte, error) { return encodeText(string(p)) }

// BatchPosition is the place of a job in a batch.
type BatchPosition struct {
	ID    string `json:"id"`
	Index *int   `json:"index,omitempty"`
}

// ContentMode is the placement of an image in its display: a content mode of UIKit.
type ContentMode string

// The content modes.
const (
	ScaleToFill     ContentMode = "scaleToFill"
	ScaleAspectFit  ContentMode = "scaleAspectFit"
	ScaleAspectFill ContentMode = "scaleAspectFill"
	Redraw          ContentMode = "redraw"
	Center          ContentMode = "center"
	Top             ContentMode = "top"
	Bottom          ContentMode = "bottom"
	Left            ContentMode = "left"
	Right           ContentMode = "right"
	TopLeft         ContentMode = "topLeft"
	TopRight        ContentMode = "topRight"
	BottomLeft      ContentMode = "bottomLeft"
	BottomRight     ContentMode = "bottomRight"
)

// ScaleOptions is the treatment of the excess where aspect ratios differ.
type ScaleOptions string

// The treatments: FitCropsExcess shrinks the display to the image, FillLeavesExcess lets it grow.
const (
	FitLeavesExcessAndFillCropsExcess ScaleOptions = "fitLeavesExcessAndFillCropsExcess"
	FitCropsExcess                    ScaleOptions = "fitCropsExcess"
	FillLeavesExcess                  ScaleOptions = "fillLeavesExcess"
	FitCropsExcessAndFillLeavesExcess ScaleOptions = "fitCropsExcessAndFillLeavesExcess"
)

// Interpolation is the interpolation of pixels.
type Interpolation string

// The interpolations: nearest neighbor, linear, cubic, and Lanczos with at least a factor of two left for it. The default
// is Lanczos after the largest possible shrink on load.
const (
	InterpolationNone   Interpolation = "none"
	InterpolationLow    Interpolation = "low"
	InterpolationMedium Interpolation = "medium"
	InterpolationHigh   Interpolation = "high"
)

// Tolerance is the damage to a source that is tolerated.
type Tolerance string

// The tolerances: none, or a JPEG, PNG, GIF or BMP that ends too early.
const (
	ToleranceStrict    Tolerance = "strict"
	ToleranceTruncated Tolerance = "truncated"
)

// Format is the format of a file.
type Format string

// The formats that workers can write.
const (
	JPEG Format = "jpeg"
	Best Format = "best" // the smallest of several; only in jobs
	PNG  Format = "png"
	WebP Format = "webp"
	AVIF Format = "avif"
	GIF  Format = "gif"
	TIFF Format = "tiff"
	JXL  Format = "jxl"
)

// CropRect is a part of an image, from the top left corner, in fractions of its sides or in pixels.
type CropRect struct {
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
	// Unit is "pixels", or "" for fractions.
	Unit string `json:"unit,omitempty"`
}

// Gravity is the part that is kept when ScaleAspectFill crops the image.
type Gravity string

// The middle, the part that draws the eye, and the part with the highest entropy.
const (
	GravityCenter    Gravity = "center"
	GravityAttention Gravity = "attention"
	GravityEntropy   Gravity = "entropy"
	// The part with faces, or with all things that the detector finds; without any, GravityAttention.
	GravityFaces   Gravity = "faces"
	GravityObjects Gravity = "objects"
)

// GravityDetected returns the part with what the detector finds ("faces" or "objects") with at least a confidence from 0 to 1, or else
// the fallback.
func GravityDetected(kind string, confidence float64, fallback Gravity) Gravity {
	return Gravity(object(members{"detect": kind, "confidence": confidence, "fallback": fallback}))
}

// GravityPoint returns the surroundings of a point, in fractions of the sides of the image.
func GravityPoint(x, y float64) Gravity { return Gravity(object(members{"x": x, "y": y})) }

// MarshalJSON encodes the gravity.
func (g Gravity) MarshalJSON() ([]byte, error) { return encodeText(string(g)) }

// Sizer is a rule for the size that replaces width and height.
type Sizer string

// Natural is the size of the image itself.
const Natural Sizer = "natural"

// AspectScaleDownByWidth limits the width to a number of points; the height stays in proportion.
func AspectScaleDownByWidth(points float64) Sizer {
	return Sizer(object(members{"aspectScaleDownByWidth": points}))
}

// AspectScaleDownByHeight limits the height to a number of points; the width stays in proportion.
func AspectScaleDownByHeight(points float64) Sizer {
	return Sizer(object(members{"aspectScaleDownByHeight": points}))
}

// MarshalJSON encodes the sizer.
func (s Sizer) MarshalJSON() ([]byte, error) { return encodeText(string(s)) }

// members are those of a JSON object. Nil ones are left out.
type members map[string]any

// object returns the text of a JSON object. Values with numbers that JSON does not have become an object that the gateway
// refuses, so that constructors need not return errors.
func object(members members) string {
	for name, value := range members {
		if value == nil {
			delete(members, name)
		}
		if number, is := value.(float64); is && (math.IsNaN(number) || math.IsInf(number, 0)) {
			members[name] = fmt.Sprint(number)
		}
	}
	encoded, err := json.Marshal(members)
	if err != nil {
		return fmt.Sprintf(`{"error": %q}`, err)
	}
	return string(encoded)
}

// optional returns nil for "".
func optional(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

// encodeText encodes a value that is a text, or contains a JSON object.
func encodeText(text string) ([]byte, error) {
	if strings.HasPrefix(text, "{") {
		return []byte(text), nil
	}
	return json.Marshal(text)
}

func encodeNumberOrText(text string) ([]byte, error) {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return []byte(text), nil
	}
	return json.Marshal(text)
}
