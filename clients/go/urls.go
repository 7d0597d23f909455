package halcyon

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// URLSigner signs URLs, for example for images on web pages. It has one of the secrets of the setting gateway.urlKeys.
type URLSigner struct {
	KeyID  string // the id of the secret
	Secret string
}

// Sign returns a URL of a gateway that is valid up to the second of expires, for whoever has it. Sign the result of
// [Client.RenderURL], [Client.ImageURL] or [Client.EventsURL]: the signature covers the path as the gateway receives it.
// With the zero time the URL does not expire, which the gateway must allow.
func (s URLSigner) Sign(address string, expires time.Time) (string, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return "", fmt.Errorf("halcyon: %q is not an absolute URL", address)
	}
	if parsed.Fragment != "" || strings.Contains(address, "#") {
		return "", fmt.Errorf("halcyon: %q has a fragment", address)
	}
	// The target is signed as it is sent, without decoding anything.
	target := address[strings.Index(address, parsed.Host)+len(parsed.Host):]
	if !strings.HasPrefix(target, "/") {
		return "", fmt.Errorf("halcyon: %q has no path", address)
	}
	addition := "keyId=" + percentEncode(s.KeyID, "")
	if !expires.IsZero() {
		addition += "&expires=" + strconv.FormatInt(expires.Unix(), 10)
	}
	if strings.Contains(target, "?") {
		addition = "&" + addition
	} else {
		addition = "?" + addition
	}
	code := hmac.New(sha256.New, []byte(s.Secret))
	code.Write([]byte(target + addition))
	return address + addition + "&signature=" + hex.EncodeToString(code.Sum(nil)), nil
}

// RenderURL returns the URL that renders a job, for requests with a key, or to be signed. It can express jobs with one
// output whose delivery is that of HTTP: fields such as ID, Variants, Delivery and Metadata are errors.
func (c *Client) RenderURL(job Job) (string, error) {
	path, err := renderTarget(job)
	return c.base.String() + path, err
}

// InfoURL returns the URL of facts about the source of a job, for requests with a key, or to be signed.
func (c *Client) InfoURL(job Job) (string, error) {
	path, err := infoTarget(job)
	return c.base.String() + path, err
}

// ImageURL returns the URL of a stored result, for requests with a key, or to be signed.
func (c *Client) ImageURL(key string) string { return c.base.String() + target(nil, "images", key) }

// EventsURL returns the URL of an event stream, for requests with a key, or to be signed for the EventSource of browsers.
func (c *Client) EventsURL(filter EventFilter) string {
	return c.base.String() + target(filter.query(), "events")
}

// renderParameters are the fields of jobs that /v1/render takes, in the order of URLs.
var renderParameters = []string{
	"source", "fallback", "width", "height", "screenScale", "contentMode", "scaleOptions", "position", "cropRect", "trim",
	"gravity", "sizeForDisplay", "sizer", "upscale", "interpolationQuality", "linearLight", "background", "before", "processors",
	"format", "quality", "lossless", "effort", "progressive", "stripMetadata", "keepProfile", "page", "frames", "maximumBytes", "allowResize",
	"nearLossless", "chromaSubsampling", "bitDepth", "quantize", "profile", "tolerance", "maxAge", "cache", "tenant", "tags",
	"priority",
}

// infoParameters are the fields of jobs that /v1/info takes, in the order of URLs.
var infoParameters = []string{
	"source", "location", "blurhash", "dominantColor", "palette", "thumbhash", "phash", "faces", "page", "tolerance", "maxAge", "cache",
	"tenant", "tags", "priority",
}

func infoTarget(job Job) (string, error) {
	fields, err := jobFields(job)
	if err != nil {
		return "", err
	}
	if job.Info != nil && job.Info.Location {
		fields["location"] = json.RawMessage("true")
	}
	delete(fields, "info")
	query, err := queryOf(fields, infoParameters)
	return target(query, "info"), err
}

func jobFields(job Job) (map[string]json.RawMessage, error) {
	encoded, err := json.Marshal(job)
	if err != nil {
		return nil, fmt.Errorf("halcyon: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return nil, fmt.Errorf("halcyon: %w", err)
	}
	return fields, nil
}

func renderTarget(job Job) (string, error) {
	fields, err := jobFields(job)
	if err != nil {
		return "", err
	}
	segments := []string{"render"}
	if preset, exists := fields["preset"]; exists {
		var name string
		if json.Unmarshal(preset, &name) != nil {
			return "", fmt.Errorf("halcyon: a rendering cannot require a version of a preset")
		}
		segments = append(segments, "preset", name)
		delete(fields, "preset")
	}
	query, err := queryOf(fields, renderParameters)
	if err != nil {
		return "", err
	}
	return target(query, segments...), nil
}

// queryOf returns the fields as parameters of these names. Other fields are an error.
func queryOf(fields map[string]json.RawMessage, names []string) (parameters, error) {
	var query parameters
	for _, name := range names {
		if value, exists := fields[name]; exists {
			text, err := renderParameter(name, value)
			if err != nil {
				return query, fmt.Errorf("halcyon: %s: %w", name, err)
			}
			query.add(name, text)
			delete(fields, name)
		}
	}
	for name := range fields {
		return query, fmt.Errorf("halcyon: a rendering cannot have the field %s", name)
	}
	return query, nil
}

// renderParameter writes texts and numbers as they are, rectangles, points and tags as lists, and all else as JSON.
func renderParameter(name string, value json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text, nil
	}
	switch name {
	case "cropRect":
		var rect CropRect
		err := json.Unmarshal(value, &rect)
		parts := []string{number(rect.X), number(rect.Y), number(rect.Width), number(rect.Height)}
		if rect.Unit != "" {
			parts = append(parts, rect.Unit)
		}
		return strings.Join(parts, ","), err
	case "gravity":
		var point struct {
			X, Y   float64
			Detect string
		}
		err := json.Unmarshal(value, &point)
		if point.Detect != "" {
			return string(value), nil
		}
		return number(point.X) + "," + number(point.Y), err
	case "tags":
		var tags []string
		err := json.Unmarshal(value, &tags)
		return strings.Join(tags, ","), err
	}
	return string(value), nil
}
