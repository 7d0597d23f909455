package halcyon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func bytesReader(text string) io.Reader { return strings.NewReader(text) }

// gateway starts a server with a handler of its own, and a client of it.
func gateway(t *testing.T, config Config, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := New(server.URL, config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestJobJSON(t *testing.T) {
	job := Job{
		Source:       VideoFrame(URLWithCacheKey("https://example.org/a.mp4", "a"), 1.5),
		Alternatives: []Source{"https://mirror.example.org/cat.jpg", ImageBytes([]byte("GIF"), "")},
		Fallback:     NoFallback,
		Output: Output{
			Width: 400, Effort: Ptr(0), Upscale: Ptr(false), Gravity: GravityPoint(0.25, 0.5), Processors: []Processor{
				BlackWhite, RoundCorner(Points(8), "", TopLeft), Blur(2.5), Watermark{Source: "initials:JD"}.Processor(),
				Pad{All: 2}.Processor(), Text{Text: "<\n\\>", Font: "DejaVu Sans", Offset: &Offset{Y: -1}}.Processor(),
				BlendImage("initials:A", "hue", 0.5), Mask("star"),
			},
			Before: []Processor{Gamma(1.5)}, Trim: &Trim{Tolerance: Ptr(0)}, Position: Top, LinearLight: true,
		},
		Variants:   []Output{{Name: "small", Sizer: AspectScaleDownByWidth(90), Reset: []string{"effort"}}},
		Cache:      &Cache{Memory: Ptr(false), Store: StoreRequired},
		Delivery:   DeliverPuts(map[string]string{"small": "https://example.org/put"}),
		NotBefore:  After(90 * time.Second),
		Deadline:   At(time.Unix(1790000000, 5)),
		Refresh:    RefreshBeforeExpiry,
		Generation: Ptr[int64](0),
		Preset:     PresetVersion("card", 3),
		Metadata:   map[string]any{"article": 17},
		Extra:      map[string]any{"later": true},
	}
	want := `{
		"source": {"video": {"url": "https://example.org/a.mp4", "cacheKey": "a"}, "seconds": 1.5},
		"alternatives": ["https://mirror.example.org/cat.jpg", {"base64": "R0lG"}], "fallback": false, "width": 400,
		"effort": 0, "upscale": false, "gravity": {"x": 0.25, "y": 0.5}, "processors": ["blackWhite",
			{"roundCorner": {"radius": 8, "corners": ["topLeft"]}}, {"blur": {"radius": 2.5}},
			{"watermark": {"source": "initials:JD"}}, {"pad": {"all": 2}},
			{"text": {"text": "<\n\\>", "font": "DejaVu Sans", "offset": {"x": 0, "y": -1}}},
			{"overlay": {"source": "initials:A", "mode": "hue", "opacity": 0.5}}, {"mask": {"shape": "star"}}],
		"before": [{"gamma": {"gamma": 1.5}}], "trim": {"tolerance": 0}, "position": "top", "linearLight": true,
		"variants": [{"name": "small", "sizer": {"aspectScaleDownByWidth": 90}, "effort": null}],
		"cache": {"memory": false, "store": "required"}, "delivery": {"put": {"small": "https://example.org/put"}},
		"notBefore": 90, "deadline": "2026-09-21T14:13:20Z", "refresh": "beforeExpiry", "generation": 0,
		"preset": {"name": "card", "version": 3}, "metadata": {"article": 17}, "later": true}`
	if text, err := json.Marshal(job); err != nil || canonical(t, text) != canonical(t, []byte(want)) {
		t.Errorf("%v %s", err, text)
	}
	if text, _ := json.Marshal(Job{}); string(text) != "{}" {
		t.Errorf("%s", text)
	}
}

func canonical(t *testing.T, text []byte) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	text, _ = json.Marshal(value)
	return string(text)
}

func TestSignedURL(t *testing.T) {
	signer := URLSigner{KeyID: "1", Secret: "0123456789abcdef0123456789abcdef"}
	signed, err := signer.Sign(
		"https://images.example.org/v1/render?source=https%3A%2F%2Fexample.org%2Fcat.jpg&width=400",
		time.Unix(1790000000, 0))
	// The example of docs/access.md.
	if err != nil || !strings.HasSuffix(
		signed, "&signature=fa2e1359ceb8e94b2c9b81f45da9ee7ad5487a0497cad0e391f2e397db998c14") {
		t.Error(signed, err)
	}
	for _, address := range []string{"/v1/render", "https://example.org", "https://example.org/a#b"} {
		if _, err := signer.Sign(address, time.Time{}); err == nil {
			t.Error(address)
		}
	}
}

func TestRenderURL(t *testing.T) {
	client, _ := New("https://example.org/halcyon/", Config{})
	address, err := client.RenderURL(Job{
		Source: "https://example.org/a b.jpg", Preset: "card", Tags: []string{"a", "b"}, Output: Output{
			Width: 400.5, CropRect: &CropRect{0.5, 0, 0.5, 1, "pixels"}, Gravity: GravityPoint(0.3, 0.7), Lossless: true,
			Processors: []Processor{BlackWhite},
		},
	})
	want := "https://example.org/halcyon/v1/render/preset/card?source=https%3A%2F%2Fexample.org%2Fa%20b.jpg&width=400.5" +
		"&cropRect=0.5%2C0%2C0.5%2C1%2Cpixels&gravity=0.3%2C0.7&processors=%5B%22blackWhite%22%5D&lossless=true&tags=a%2Cb"
	if err != nil || address != want {
		t.Errorf("%v\n%s\n%s", err, address, want)
	}
	if _, err := client.RenderURL(Job{Source: "https://example.org/", ID: "a"}); err == nil {
		t.Error("a rendering has no id")
	}
}

func TestProblemsAndFailures(t *testing.T) {
	client := gateway(t, Config{Key: "secret"}, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Error(r.Header)
		}
		if r.Method == "GET" {
			io.WriteString(w, `{"id": "a", "state": "failed", "event": {"type": "halcyon.image.failed", "id": "e",
				"time": "2026-11-21T10:31:07.312Z", "data": {"job": {"id": "a"}, "code": "not_found", "message": "404",
				"retryable": false, "attempts": 1, "timings": {}}}}`)
			return
		}
		w.WriteHeader(400)
		io.WriteString(w, `{"type": "/problems/invalid-job", "title": "Invalid job", "status": 400, "detail": "width: no",
			"code": "invalid_job"}`)
	})
	_, err := client.Submit(context.Background(), Job{Source: "initials:A"})
	var problem *ProblemError
	if !errors.Is(err, KindInvalidJob) || !errors.Is(err, CodeInvalidJob) || errors.Is(err, CodeNotFound) ||
		!errors.As(err, &problem) || problem.Detail != "width: no" || IsTemporary(err) {
		t.Error(err)
	}
	_, err = client.Wait(context.Background(), "a")
	var failed *JobFailedError
	if !errors.Is(err, CodeNotFound) || !errors.As(err, &failed) || failed.ID != "a" || failed.Message != "404" {
		t.Error(err)
	}
}

func TestRetryAfterIsHonored(t *testing.T) {
	var count atomic.Int32
	var ids [2]string
	client := gateway(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		var job struct{ ID string }
		_ = json.NewDecoder(r.Body).Decode(&job)
		index := count.Add(1) - 1
		ids[index] = job.ID
		if index == 0 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
			return
		}
		w.WriteHeader(202)
		io.WriteString(w, `{"id": "a", "images": ["/v1/images/halcyon:%7B00%7D:01"]}`)
	})
	start := time.Now()
	accepted, err := client.Submit(context.Background(), Job{Source: "initials:A"})
	if err != nil || accepted.Keys()[0] != "halcyon:{00}:01" || time.Since(start) < time.Second || ids[0] == "" ||
		ids[0] != ids[1] {
		t.Error(accepted, err, time.Since(start), ids)
	}
}

func TestConnectionsThatFallSilentAreLost(t *testing.T) {
	silence := func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	client := gateway(t, Config{ReadTimeout: 50 * time.Millisecond, RetryTimeout: -1}, silence)
	_, err := client.Batch(context.Background(), "a")
	var connection *ConnectionError
	if !errors.As(err, &connection) || !strings.Contains(err.Error(), "nothing was received") {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	patient := gateway(t, Config{RetryTimeout: -1}, silence)
	if _, err := patient.Batch(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestRedirectsToTheStoreAreFollowedWithoutTheKey(t *testing.T) {
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the key was sent to the store")
		}
		io.WriteString(w, "image")
	}))
	defer store.Close()
	client := gateway(t, Config{Key: "secret"}, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, store.URL, http.StatusFound)
	})
	data, err := client.ImageData(context.Background(), Variant{Key: "halcyon:{00}:01"})
	if err != nil || string(data) != "image" {
		t.Error(string(data), err)
	}
}

func TestBrokenResponsesFromOtherServersAreRequestedAgain(t *testing.T) {
	var requests atomic.Int32
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		if requests.Add(1)%2 == 1 {
			io.WriteString(w, "im")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, "image")
	}))
	defer store.Close()
	client := gateway(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/stored") {
			http.Redirect(w, r, store.URL, http.StatusFound)
			return
		}
		w.WriteHeader(404)
		io.WriteString(w, `{"type": "/problems/not-found"}`)
	})
	for _, variant := range []Variant{
		{Key: "stored"}, {Key: "none", URL: store.URL + "/public"}, {Key: "none", Put: store.URL + "/uploaded"},
	} {
		data, err := client.ImageData(context.Background(), variant)
		if err != nil || string(data) != "image" {
			t.Error(variant, string(data), err)
		}
	}
	if requests.Load() != 6 {
		t.Error(requests.Load())
	}
}

func TestImageUploadsAndLoadsTheImageFromThere(t *testing.T) {
	var submitted []string
	problem := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(404)
		io.WriteString(w, `{"type": "/problems/not-found"}`)
	}
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/image" {
			problem(w, r)
			return
		}
		io.WriteString(w, "image")
	}))
	defer target.Close()
	uploaded := target.URL + "/image"
	client := gateway(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == "POST":
			body, _ := io.ReadAll(r.Body)
			submitted = append(submitted, string(body))
			w.WriteHeader(202)
			io.WriteString(w, `{"id": "a"}`)
		case strings.HasPrefix(r.URL.Path, "/v1/jobs/"):
			fmt.Fprintf(w, `{"id": "a", "state": "ready", "event": {"type": "halcyon.image.ready", "id": "e",
				"time": "2026-11-21T10:31:07.312Z", "data": {"job": {"id": "a"}, "timings": {}, "variants": [
				{"key": "halcyon:{00}:01", "format": "png", "put": %q}]}}}`, uploaded)
		default:
			problem(w, r)
		}
	})
	job := Job{ID: "a", Source: "initials:A", Delivery: DeliverPut(uploaded)}
	image, err := client.Image(context.Background(), job)
	if err != nil || string(image.Data) != "image" {
		t.Error(image, err)
	}
	job.Delivery = DeliverInline
	if images, err := client.Images(context.Background(), job); err != nil || len(images) != 1 {
		t.Error(images, err)
	}
	if len(submitted) != 2 || !strings.Contains(submitted[0], `"delivery":{"put":"`+uploaded+`"}`) ||
		!strings.Contains(submitted[1], `"delivery":"reference"`) {
		t.Error(submitted)
	}
	uploaded = target.URL + "/gone"
	if _, err := client.Image(context.Background(), job); !errors.Is(err, KindNotFound) {
		t.Error(err)
	}
	uploaded = target.URL
	if _, err := client.Image(context.Background(), job); !errors.Is(err, ErrNotDelivered) {
		t.Error(err)
	}
}

func TestStreamsResumeAfterTheLastCompleteEvent(t *testing.T) {
	event := func(id int) string {
		return fmt.Sprintf("id: %d\r\ndata: {\"id\": \"e%d\", \"type\": \"halcyon.image.started\",\n"+
			"data: \"time\": \"2026-11-21T10:31:07.312Z\", \"data\": {\"job\": {\"id\": \"j\"}}}\n\n", id, id)
	}
	responses := map[string]string{
		"":  "retry: 1\n\n:\nid: 0\n\n" + event(1) + "id: 2\ndata: {\"half\"",
		"1": event(2) + "id: 3\nevent: gap\ndata: {\"reason\": \"deleted\"}\n\n",
	}
	client := gateway(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		response, exists := responses[r.Header.Get("Last-Event-ID")]
		if !exists {
			w.WriteHeader(401)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, response)
	})
	events, err := client.Subscribe(context.Background(), EventFilter{Types: []EventType{EventStarted}}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	seen := events.Cursor()
	for events.Next() {
		if message := events.Message(); message.Event != nil {
			seen += " " + message.Event.ID + message.Event.Job.ID
		} else {
			seen += " " + message.Gap
		}
	}
	if seen != "0 e1j e2j deleted" || !errors.Is(events.Err(), KindBlank) || events.Cursor() != "3" {
		t.Error(seen, events.Err(), events.Cursor())
	}
}

func TestLargeResponsesAreErrors(t *testing.T) {
	client := gateway(t, Config{MaximumImageBytes: 4, MaximumEventBytes: 20}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "id: 1\n\ndata: "+strings.Repeat("x", 5000))
	})
	if _, err := client.StoredImage(context.Background(), "a"); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	events, err := client.Subscribe(context.Background(), EventFilter{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if events.Next() || !errors.Is(events.Err(), ErrTooLarge) {
		t.Error(events.Err())
	}
}

func TestBatchThatWasClosedByALostRequest(t *testing.T) {
	var posts atomic.Int32
	client := gateway(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == "GET":
			io.WriteString(w, `{"id": "b", "state": "running", "total": 2, "createdAt": "2026-11-21T10:31:07.312Z"}`)
		case posts.Add(1) == 1:
			w.WriteHeader(503)
		default:
			w.WriteHeader(409)
			io.WriteString(w, `{"type": "/problems/conflict"}`)
		}
	})
	jobs := []Job{{Source: "initials:A"}, {Source: "initials:B"}}
	submission, err := client.CreateBatch(context.Background(), jobs, BatchOptions{ID: "b"})
	if err != nil || submission.Accepted != 2 {
		t.Error(submission, err)
	}
	if _, err := client.CreateBatch(context.Background(), jobs, BatchOptions{ID: "b"}); !errors.Is(err, KindConflict) {
		t.Error(err)
	}
}

func TestSubmitAndWaitCancelsTheJobWithTheContext(t *testing.T) {
	for _, during := range []string{"POST", "GET"} {
		ctx, cancel := context.WithCancel(context.Background())
		cancelled := make(chan string, 1)
		client := gateway(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == during {
				cancel()
			}
			switch r.Method {
			case "POST":
				time.Sleep(20 * time.Millisecond) // The gateway accepts the job although nobody waits for it.
				w.WriteHeader(202)
				io.WriteString(w, `{"id": "a"}`)
			case "GET":
				<-r.Context().Done()
			case "DELETE":
				cancelled <- r.URL.Path
				w.WriteHeader(202)
			}
		})
		if _, err := client.SubmitAndWait(ctx, Job{ID: "a", Source: "initials:A"}); !errors.Is(err, context.Canceled) {
			t.Error(during, err)
		}
		select {
		case path := <-cancelled:
			if path != "/v1/jobs/a" {
				t.Error(during, path)
			}
		case <-time.After(time.Minute):
			t.Error(during, "the job was not cancelled")
		}
	}
}
