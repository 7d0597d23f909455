package halcyon

import (
	"encoding/json"
	"strings"
	"time"
)

// EventType is the type of an event.
type EventType string

// The types of events.
const (
	EventStarted        EventType = "halcyon.image.started"
	EventProgress       EventType = "halcyon.image.progress"
	EventReady          EventType = "halcyon.image.ready"
	EventFailed         EventType = "halcyon.image.failed"
	EventCancelled      EventType = "halcyon.image.cancelled"
	EventSuperseded     EventType = "halcyon.image.superseded"
	EventPurged         EventType = "halcyon.image.purged"
	EventBatchProgress  EventType = "halcyon.batch.progress"
	EventBatchCompleted EventType = "halcyon.batch.completed"
)

// EndsJob reports whether a job has ended with an event of this type.
func (t EventType) EndsJob() bool {
	return t == EventReady || t == EventFailed || t == EventCancelled || t == EventSuperseded
}

// Event is an event of a cluster, such as the end of a job: a CloudEvent of the topic of events. json.Unmarshal decodes
// one from a record, a message of a Redis channel, or the body of a webhook.
//
// Of the pointers, those are set that belong to the type. An event of a type that this version does not know has its Data
// alone.
type Event struct {
	ID          string // unique; the same if a job that is delivered twice causes the event again
	Type        EventType
	Subject     string // the source as in the job or the purge, or the id of a batch
	Time        time.Time
	TraceParent string
	Data        json.RawMessage // the whole content

	Job        *EventJob   // the job, of all events of jobs
	Progress   *Progress   // of EventProgress
	Ready      *Ready      // of EventReady
	Failed     *Failed     // of EventFailed
	Superseded *Superseded // of EventSuperseded
	Purged     *Purged     // of EventPurged
	Batch      *Batch      // of EventBatchProgress and EventBatchCompleted
}

// UnmarshalJSON decodes an event of the event schema.
func (e *Event) UnmarshalJSON(text []byte) error {
	var envelope struct {
		ID, Subject, TraceParent string
		Type                     EventType
		Time                     time.Time
		Data                     json.RawMessage
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return err
	}
	*e = Event{
		ID: envelope.ID, Type: envelope.Type, Subject: envelope.Subject, Time: envelope.Time,
		TraceParent: envelope.TraceParent, Data: envelope.Data,
	}
	if len(e.Data) == 0 {
		return nil
	}
	var data struct {
		Job   *EventJob
		Batch *Batch
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return err
	}
	e.Job, e.Batch = data.Job, data.Batch
	switch e.Type {
	case EventProgress:
		return json.Unmarshal(e.Data, &e.Progress)
	case EventReady:
		return json.Unmarshal(e.Data, &e.Ready)
	case EventFailed:
		return json.Unmarshal(e.Data, &e.Failed)
	case EventSuperseded:
		return json.Unmarshal(e.Data, &e.Superseded)
	case EventPurged:
		return json.Unmarshal(e.Data, &e.Purged)
	}
	return nil
}

// EventJob is the job that an event is about.
type EventJob struct {
	ID          string          `json:"id"`
	Metadata    json.RawMessage `json:"metadata"`    // as in the job, or nil
	Placeholder json.RawMessage `json:"placeholder"` // as in the job, or nil
	AltText     json.RawMessage `json:"altText"`     // as in the job, or nil
	Batch       *BatchPosition  `json:"batch"`       // nil if the job belongs to none
	Preset      *struct {
		Name    string `json:"name"`
		Version int64  `json:"version"`
	} `json:"preset"` // the version that was used; nil without a preset
}

// Progress says how much of a source has been loaded.
type Progress struct {
	Stage    string `json:"stage"`    // "fetch", or a stage of a later version
	Received int64  `json:"received"` // bytes
	Total    int64  `json:"total"`    // bytes of the whole source, or 0 if the origin does not say
	Attempt  int    `json:"attempt"`  // from 1
}

// Ready has the images of a job.
type Ready struct {
	Job         EventJob           `json:"job"`
	Key         string             `json:"key"`         // the key of the first variant
	Variants    []Variant          `json:"variants"`    // in the order of the variants of the job, without Failures
	Failures    []VariantFailure   `json:"failures"`    // the variants that could not be made, of a job with Partial
	ExpiresAt   *time.Time         `json:"expiresAt"`   // the expiry of the first result; nil if one is not stored
	Origin      string             `json:"origin"`      // memory, store, source-cache, network or coalesced
	Attempts    int                `json:"attempts"`    // 0 if there was one
	Timings     map[string]float64 `json:"timings"`     // milliseconds by stage, and their total
	Source      *LoadedSource      `json:"source"`      // nil for a prefetch
	Alternative string             `json:"alternative"` // the alternative that was used, or ""
	Fallback    *Failed            `json:"fallback"`    // the failure of a job that shows its fallback picture
	Warnings    []string           `json:"warnings"`
}

// Variant describes an image.
type Variant struct {
	Key           string     `json:"key"`    // the key of the result
	Name          string     `json:"name"`   // the name of the variant, if the job gave it one
	Width         int        `json:"width"`  // pixels
	Height        int        `json:"height"` // pixels
	Format        Format     `json:"format"`
	Bytes         int64      `json:"bytes"`
	SHA256        string     `json:"sha256"` // in hexadecimal digits
	Frames        int        `json:"frames"` // of an animation, otherwise 0
	BlurHash      string     `json:"blurhash"`
	DominantColor string     `json:"dominantColor"`
	Trim          *Rect      `json:"trim"` // the part of the upright source that remained without margins, or nil
	Palette       []string   `json:"palette"`
	ThumbHash     []byte     `json:"thumbhash"`
	PHash         string     `json:"phash"`
	Faces         []Face     `json:"faces"`     // the most confident first, if the job asked for them
	Info          *Info      `json:"info"`      // facts about the source, if the job asked for them
	Encoding      *Encoding  `json:"encoding"`  // the outcome of a search for the size or the quality; nil without one
	ExpiresAt     *time.Time `json:"expiresAt"` // nil if it is not stored
	URL           string     `json:"url"`       // the public URL in the result store, or ""
	Put           string     `json:"put"`       // the address to which the file was uploaded, or ""
	Data          []byte     `json:"data"`      // the file, if it was delivered in the event
}

// Rect is a part of an image, in pixels from its top left corner.
type Rect struct {
	X      int `json:"x"`
	Y      int `json:"y"`
	Width  int `json:"width"`
	Height int `json:"height"`
}

// Face is a face in an image.
type Face struct {
	Rect
	Confidence float64 `json:"confidence"` // of the detector, 0 to 1
}

// Info has facts about a source (docs/info.md).
type Info struct {
	Format        Format     `json:"format"`
	MediaType     string     `json:"mediaType"`
	Bytes         int64      `json:"bytes"`
	Width         int        `json:"width"`  // pixels, after auto-rotation
	Height        int        `json:"height"` // pixels, after auto-rotation
	Orientation   int        `json:"orientation"`
	Frames        int        `json:"frames"`   // of an animation, otherwise 0
	Duration      int        `json:"duration"` // of an animation, in milliseconds
	Loop          *int       `json:"loop"`     // how often the animation is played, 0 for ever; nil if it does not say so
	Pages         int        `json:"pages"`    // of a PDF or TIFF, otherwise 0
	ColorSpace    string     `json:"colorSpace"`
	BitsPerSample int        `json:"bitsPerSample"`
	Alpha         bool       `json:"alpha"`
	Profile       *Profile   `json:"profile"` // nil without an ICC profile
	Video         *VideoInfo `json:"video"`   // nil unless it is a frame of a video
	Truncated     bool       `json:"truncated"`
	EXIF          *EXIF      `json:"exif"`     // nil without metadata of a camera
	Location      *Location  `json:"location"` // nil if it is unknown or was not asked for
	BlurHash      string     `json:"blurhash"`
	DominantColor string     `json:"dominantColor"`
	Palette       []string   `json:"palette"`
	ThumbHash     []byte     `json:"thumbhash"`
	PHash         string     `json:"phash"`
	Faces         []Face     `json:"faces"` // the most confident first, if they were asked for
}

// VideoInfo has facts about the video that a frame is from.
type VideoInfo struct {
	Codec    string `json:"codec"`
	Duration int64  `json:"duration"` // of the whole video, in milliseconds, or 0 if it is unknown
}

// EXIF is the metadata of a camera. What it has not stored has the zero value.
type EXIF struct {
	Make                  string   `json:"make"`
	Model                 string   `json:"model"`
	LensMake              string   `json:"lensMake"`
	LensModel             string   `json:"lensModel"`
	Software              string   `json:"software"`
	Artist                string   `json:"artist"`
	Copyright             string   `json:"copyright"`
	DateTimeOriginal      string   `json:"dateTimeOriginal"` // local, with the offset if known: 2026-05-01T12:34:56+02:00
	ExposureTime          float64  `json:"exposureTime"`     // seconds
	FNumber               float64  `json:"fNumber"`
	ISO                   float64  `json:"iso"`
	ExposureBias          *float64 `json:"exposureBias"`          // EV
	FocalLength           float64  `json:"focalLength"`           // millimeters
	FocalLengthIn35mmFilm float64  `json:"focalLengthIn35mmFilm"` // millimeters
	Flash                 *bool    `json:"flash"`                 // whether the flash fired
}

// Profile is an ICC profile.
type Profile struct {
	Name       string `json:"name"`
	ColorSpace string `json:"colorSpace"`
}

// Location is a position in degrees of WGS 84.
type Location struct {
	Latitude  float64  `json:"latitude"`
	Longitude float64  `json:"longitude"`
	Altitude  *float64 `json:"altitude"` // meters; nil if it is unknown
}

// Encoding is the outcome of the search for the size or the quality of a file.
type Encoding struct {
	Quality    int     `json:"quality"`    // 0 for a lossless file
	Colors     int     `json:"colors"`     // of the palette, or 0
	Similarity float64 `json:"similarity"` // to the picture before encoding, or 0 if it was not measured
	Encodings  int     `json:"encodings"`  // the number of encoded files; 0 if the file of the source was used
}

// VariantFailure is a variant that could not be made.
type VariantFailure struct {
	Variant int         `json:"variant"` // the index in the job, from 0
	Code    FailureCode `json:"code"`
	Message string      `json:"message"`
}

// LoadedSource describes the source of a job.
type LoadedSource struct {
	Status    int    `json:"status"` // of the HTTP response, or 0
	ETag      string `json:"etag"`
	Bytes     int64  `json:"bytes"`
	Format    string `json:"format"`
	Width     int    `json:"width"`  // pixels, after rotation
	Height    int    `json:"height"` // pixels, after rotation
	Truncated bool   `json:"truncated"`
}

// Failed has the reason for the failure of a job.
type Failed struct {
	Code      FailureCode        `json:"code"`
	Message   string             `json:"message"`
	Retryable bool               `json:"retryable"` // the same job may succeed later
	Attempts  int                `json:"attempts"`
	Timings   map[string]float64 `json:"timings"` // milliseconds by stage
}

// Superseded names the generation of the job that superseded another.
type Superseded struct {
	SupersededBy int64 `json:"supersededBy"`
}

// Purged says which results were purged: those of Source or Tag, that of Key, or all of Tenant.
type Purged struct {
	Source    string   `json:"source"`
	Tag       string   `json:"tag"`
	Key       string   `json:"key"`
	Tenant    string   `json:"tenant"`
	Count     int64    `json:"count"`
	CacheTags []string `json:"cacheTags"`
}

// EventFilter selects events. An event must match all fields that are set.
type EventFilter struct {
	Types   []EventType
	Jobs    []string // ids of jobs
	Batches []string // ids of batches; their jobs match too
	Sources []string // sources as in the job
}

func (f EventFilter) query() parameters {
	var query parameters
	types := make([]string, len(f.Types))
	for index, each := range f.Types {
		types[index] = string(each)
	}
	query.addNonempty("type", strings.Join(types, ","))
	for _, each := range []struct {
		name   string
		values []string
	}{{"job", f.Jobs}, {"batch", f.Batches}, {"source", f.Sources}} {
		for _, value := range each.values {
			query.add(each.name, value)
		}
	}
	return query
}
