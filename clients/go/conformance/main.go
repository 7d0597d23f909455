// Command conformance checks the package against a gateway: each behavior of clients/conformance/behaviors.json, which
// also describes the environment. It prints one JSON object for each, and exits with 1 if one failed.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.org/halcyon"
)

var (
	gateway = os.Getenv("HALCYON_URL")
	key     = os.Getenv("HALCYON_KEY")
	sources = os.Getenv("HALCYON_SOURCES")
	run     = fmt.Sprintf("go-%x", time.Now().UnixNano())
	client  = newClient(gateway, halcyon.Config{Key: key})
)

func main() {
	checks := []struct {
		behavior string
		check    func(ctx context.Context)
	}{
		{"submit", submit}, {"wait", wait}, {"submitAndWait", submitAndWait}, {"failureCodes", failureCodes},
		{"invalidJob", invalidJob}, {"retryWithBackoff", retryWithBackoff}, {"timeout", timeout},
		{"cancelWait", cancelWait}, {"cancelJob", cancelJob}, {"subscribe", subscribe},
		{"subscribeResume", subscribeResume}, {"brokenResponse", brokenResponse}, {"info", info},
		{"infoMembers", infoMembers},
		{"fetchStored", fetchStored}, {"fetchInline", fetchInline}, {"fetchOneRead", fetchOneRead}, {"fetchStoreURL", fetchStoreURL}, {"fetchPut", fetchPut},
		{"batchOfJobs", batchOfJobs}, {"batchOfTemplate", batchOfTemplate}, {"batchFailures", batchFailures},
		{"batchCancel", batchCancel}, {"batchRetry", batchRetry}, {"presetPut", presetPut}, {"presetJob", presetJob},
		{"rerender", rerender}, {"signedURL", signedURL}, {"resultKeys", resultKeys}, {"kafkaJob", kafkaJob},
		{"unauthorized", unauthorized},
	}
	status := 0
	for _, each := range checks {
		detail := attempt(each.check)
		if detail != "" {
			status = 1
		}
		line, _ := json.Marshal(map[string]any{"behavior": each.behavior, "ok": detail == "", "detail": detail})
		fmt.Println(string(line))
	}
	os.Exit(status)
}

// attempt runs a check, and returns the reason for its failure.
func attempt(check func(ctx context.Context)) (detail string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	defer func() {
		if reason := recover(); reason != nil {
			detail = fmt.Sprint(reason)
		}
	}()
	check(ctx)
	return ""
}

func submit(ctx context.Context) {
	job := photograph("coffee.jpg", 40)
	job.ID, job.Priority, job.Extra = name("submit"), halcyon.PriorityHigh, map[string]any{"widht": 3}
	for i := 0; i < 2; i++ {
		accepted := must(client.Submit(ctx, job))
		equal(accepted.ID, job.ID)
		equal(accepted.Lane, halcyon.PriorityHigh)
		equal(accepted.Keys(), must(halcyon.ResultKeys(job)))
		equal(accepted.UnknownFields, []string{"widht"})
	}
	several := must(client.SubmitJobs(ctx, []halcyon.Job{photograph("coffee.jpg", 41), photograph("coffee.jpg", -1)}))
	expect(several[0].Accepted != nil && several[0].Accepted.ID != "", "%v", several)
	isError(several[1].Problem, halcyon.KindInvalidJob)
}

func wait(ctx context.Context) {
	job := halcyon.Job{Source: source("coffee.jpg"), Metadata: map[string]any{"n": 17}, Variants: []halcyon.Output{
		{Width: 60, Height: 40}, {Name: "small", Width: 30, Height: 30, Format: halcyon.PNG},
	}}
	ready := must(client.Wait(ctx, must(client.Submit(ctx, job)).ID))
	equal(len(ready.Variants), 2)
	equal(string(ready.Job.Metadata), `{"n":17}`)
	equal(ready.Variants[0].Format, halcyon.JPEG)
	equal(ready.Variants[1].Name, "small")
	for index, variant := range ready.Variants {
		expect(verify(variant, must(client.ImageData(ctx, variant))) == job.Variants[index].Width, "width")
	}
}

func submitAndWait(ctx context.Context) {
	job := halcyon.Job{Source: source("chelsea.jpg"), Output: halcyon.Output{Width: 120, Height: 90}}
	loaded := must(client.Image(ctx, job))
	equal(verify(loaded.Variant, loaded.Data), 120.0)
	equal(loaded.Height, 90)
	job.Variants = []halcyon.Output{{Width: 31}, {Width: 32, Format: halcyon.PNG}}
	for index, each := range must(client.Images(ctx, job)) {
		equal(verify(each.Variant, each.Data), float64(31+index))
	}
}

var allCodes = []halcyon.FailureCode{
	halcyon.CodeInvalidJob, halcyon.CodeUnsupportedSource, halcyon.CodeBlockedAddress, halcyon.CodeNotFound,
	halcyon.CodeGone, halcyon.CodeForbidden, halcyon.CodeHTTPError, halcyon.CodeDNSError, halcyon.CodeConnectError,
	halcyon.CodeOriginUnavailable, halcyon.CodeTLSError, halcyon.CodeTimeout, halcyon.CodeTooManyRedirects,
	halcyon.CodeTooLarge, halcyon.CodeTooManyPixels, halcyon.CodeUnsupportedFormat, halcyon.CodeCorruptImage,
	halcyon.CodeExpired, halcyon.CodeProviderError, halcyon.CodePoison, halcyon.CodeInternal,
}

func failureCodes(ctx context.Context) {
	for path, code := range map[string]halcyon.FailureCode{
		"none.jpg": halcyon.CodeNotFound, "gone.jpg": halcyon.CodeGone, "forbidden.jpg": halcyon.CodeForbidden,
		"error.jpg": halcyon.CodeHTTPError, "corrupt.jpg": halcyon.CodeCorruptImage,
		"text.jpg": halcyon.CodeUnsupportedFormat,
	} {
		_, err := client.SubmitAndWait(ctx, photograph(path, 40))
		isError(err, code)
		var failed *halcyon.JobFailedError
		expect(errors.As(err, &failed) && failed.Message != "" && failed.ID != "", "%s: %v", path, err)
		equal(failed.Retryable, code == halcyon.CodeHTTPError)
		for _, other := range allCodes {
			expect(other == code || !errors.Is(err, other), "%s is also %s", code, other)
		}
	}
	_, err := client.SubmitAndWait(ctx, halcyon.Job{Source: "nothing:17"})
	isError(err, halcyon.CodeUnsupportedSource)

	var schema struct {
		Definitions struct {
			Code struct{ Enum []halcyon.FailureCode }
		} `json:"$defs"`
	}
	folder := filepath.Dir(os.Getenv("HALCYON_KEY_VECTORS"))
	check(json.Unmarshal(must(os.ReadFile(filepath.Join(folder, "event.schema.json"))), &schema))
	equal(schema.Definitions.Code.Enum, allCodes)
}

func invalidJob(ctx context.Context) {
	_, err := client.Submit(ctx, photograph("coffee.jpg", -1))
	isError(err, halcyon.KindInvalidJob)
	isError(err, halcyon.CodeInvalidJob)
	var problem *halcyon.ProblemError
	expect(errors.As(err, &problem), "%T", err)
	equal(problem.Status, 400)
	expect(strings.Contains(problem.Detail, "width"), "%s", problem.Detail)
}

// proxy forwards requests to the gateway, unless the handler responds itself and returns true. It records their bodies.
type proxy struct {
	*httptest.Server
	mutex  sync.Mutex
	bodies []string
}

func newProxy(handler func(attempt int, w http.ResponseWriter, r *http.Request) bool) *proxy {
	forward := httputil.NewSingleHostReverseProxy(must(url.Parse(gateway)))
	director := forward.Director
	forward.Director = func(r *http.Request) {
		director(r)
		r.Host = r.URL.Host
	}
	p := new(proxy)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.mutex.Lock()
		p.bodies = append(p.bodies, string(body))
		attempt := len(p.bodies)
		p.mutex.Unlock()
		if !handler(attempt, w, r) {
			forward.ServeHTTP(w, r)
		}
	}))
	return p
}

// abort breaks the connection.
func abort(w http.ResponseWriter) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		connection.Close()
	}
}

func retryWithBackoff(ctx context.Context) {
	var times []time.Time
	flaky := newProxy(func(attempt int, w http.ResponseWriter, r *http.Request) bool {
		times = append(times, time.Now())
		switch attempt {
		case 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			abort(w)
		default:
			return false
		}
		return true
	})
	defer flaky.Close()
	accepted := must(newClient(flaky.URL, halcyon.Config{Key: key}).Submit(ctx, photograph("coffee.jpg", 42)))
	equal(len(flaky.bodies), 3)
	equal(flaky.bodies[0], flaky.bodies[1])
	equal(flaky.bodies[0], flaky.bodies[2])
	expect(strings.Contains(flaky.bodies[0], accepted.ID), "the id was not sent")
	expect(times[1].Sub(times[0]) >= time.Second, "Retry-After was not honored: %v", times[1].Sub(times[0]))
	expect(times[2].Sub(times[1]) >= 200*time.Millisecond, "no back-off: %v", times[2].Sub(times[1]))
	must(client.Wait(ctx, accepted.ID))

	_, err := newClient(flaky.URL, halcyon.Config{Key: key}).Submit(ctx, photograph("coffee.jpg", -1))
	isError(err, halcyon.KindInvalidJob)
	equal(len(flaky.bodies), 4)
}

func timeout(ctx context.Context) {
	hasty := newClient(gateway, halcyon.Config{Key: key, JobTimeout: 300 * time.Millisecond})
	id := must(client.Submit(ctx, hanging())).ID
	_, err := hasty.Wait(ctx, id)
	isTimeout(err, id)
	expect(!must(client.JobState(ctx, id, 0)).State.Ended(), "the wait has ended the job")
	check(client.CancelJob(ctx, id))

	job := hanging()
	job.ID = name("timeout")
	_, err = hasty.SubmitAndWait(ctx, job)
	isTimeout(err, job.ID)
	_, err = client.Wait(ctx, job.ID)
	isError(err, halcyon.ErrJobCancelled)
}

func isTimeout(err error, id string) {
	var timeout *halcyon.JobTimeoutError
	expect(errors.As(err, &timeout) && errors.Is(err, context.DeadlineExceeded), "%v", err)
	equal(timeout.ID, id)
}

func cancelWait(ctx context.Context) {
	id := must(client.Submit(ctx, hanging())).ID
	cancelled, cancel := context.WithCancel(ctx)
	time.AfterFunc(300*time.Millisecond, cancel)
	start := time.Now()
	_, err := client.Wait(cancelled, id)
	isError(err, context.Canceled)
	expect(time.Since(start) < 20*time.Second, "cancelled after %v", time.Since(start))
	expect(!must(client.JobState(ctx, id, 0)).State.Ended(), "the wait has ended the job")
	check(client.CancelJob(ctx, id))

	job := hanging()
	job.ID = name("cancelWait")
	// A job that is cancelled before its submission has begun would not exist.
	events := must(client.Subscribe(ctx, halcyon.EventFilter{
		Types: []halcyon.EventType{halcyon.EventStarted}, Jobs: []string{job.ID},
	}, ""))
	defer events.Close()
	cancelled, cancel = context.WithCancel(ctx)
	started := make(chan time.Time, 1)
	go func() {
		events.Next()
		started <- time.Now()
		cancel()
	}()
	_, err = client.SubmitAndWait(cancelled, job)
	isError(err, context.Canceled)
	took := time.Since(<-started)
	expect(took < 20*time.Second, "cancelled after %v", took)
	_, err = client.Wait(ctx, job.ID)
	isError(err, halcyon.ErrJobCancelled)
}

func cancelJob(ctx context.Context) {
	id := must(client.Submit(ctx, hanging())).ID
	check(client.CancelJob(ctx, id))
	_, err := client.Wait(ctx, id)
	isError(err, halcyon.ErrJobCancelled)
	id = must(client.SubmitAndWait(ctx, photograph("coffee.jpg", 40))).Job.ID
	// The gateway answers waiting clients before it stores the end of the job.
	err = client.CancelJob(ctx, id)
	for deadline := time.Now().Add(time.Minute); err == nil && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
		err = client.CancelJob(ctx, id)
	}
	isError(err, halcyon.KindConflict)
}

func subscribe(ctx context.Context) {
	first, other, last := name("first"), name("other"), name("last")
	events := must(client.Subscribe(ctx, halcyon.EventFilter{
		Types: []halcyon.EventType{halcyon.EventStarted, halcyon.EventReady}, Jobs: []string{first, last},
	}, ""))
	defer events.Close()
	for _, id := range []string{first, other, last} {
		job := fresh("rocket.jpg", 50)
		job.ID = id
		must(client.SubmitAndWait(ctx, job))
	}
	for _, id := range []string{first, last} {
		started := next(events)
		equal(started.Type, halcyon.EventStarted)
		equal(started.Job.ID, id)
		ready := next(events)
		equal(ready.Type, halcyon.EventReady)
		equal(ready.Job.ID, id)
		equal(ready.Ready.Variants[0].Width, 50)
		expect(time.Since(ready.Time) < 10*time.Minute, "%v", ready.Time)
	}
	cancelled, cancel := context.WithCancel(ctx)
	ending := must(client.Subscribe(cancelled, halcyon.EventFilter{Jobs: []string{"none"}}, ""))
	time.AfterFunc(100*time.Millisecond, cancel)
	expect(!ending.Next(), "an event")
	isError(ending.Err(), context.Canceled)
}

func next(events *halcyon.Subscription) *halcyon.Event {
	expect(events.Next(), "%v", events.Err())
	expect(events.Message().Event != nil, "a gap: %s", events.Message().Gap)
	return events.Message().Event
}

func subscribeResume(ctx context.Context) {
	var cursors []string
	breaking := newProxy(func(attempt int, w http.ResponseWriter, r *http.Request) bool {
		cursors = append(cursors, r.Header.Get("Last-Event-ID"))
		if attempt > 2 {
			return false
		}
		// Forwards one whole event, and half of the next one.
		upstream := must(http.NewRequestWithContext(r.Context(), "GET", gateway+r.URL.RequestURI(), nil))
		upstream.Header = r.Header
		response := must(http.DefaultClient.Do(upstream))
		defer response.Body.Close()
		w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
		buffer, text := make([]byte, 1), ""
		for strings.Count(text, "\ndata:") < 2 {
			if _, err := response.Body.Read(buffer); err != nil {
				break
			}
			text += string(buffer)
			w.Write(buffer)
			w.(http.Flusher).Flush()
		}
		w.Write([]byte(` {"specversion"`))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	defer breaking.Close()
	ids := make([]string, 5)
	for index := range ids {
		ids[index] = name(fmt.Sprint("resume-", index))
	}
	events := must(newClient(breaking.URL, halcyon.Config{Key: key}).Subscribe(ctx, halcyon.EventFilter{
		Types: []halcyon.EventType{halcyon.EventReady}, Jobs: ids,
	}, ""))
	defer events.Close()
	start := events.Cursor()
	var seen []string
	for _, id := range ids {
		job := photograph("coffee.jpg", 43)
		job.ID = id
		must(client.SubmitAndWait(ctx, job))
	}
	for range ids {
		seen = append(seen, next(events).Job.ID)
	}
	sort.Strings(seen)
	equal(seen, ids)
	equal(len(cursors), 3)
	expect(cursors[0] == "" && cursors[1] != "" && cursors[2] != cursors[1], "Last-Event-ID: %v", cursors)
	// Another stream resumes at a cursor, also in another process.
	again := must(client.Subscribe(ctx, halcyon.EventFilter{
		Types: []halcyon.EventType{halcyon.EventReady}, Jobs: ids,
	}, start))
	defer again.Close()
	expect(strings.HasPrefix(next(again).Job.ID, run), "other events")
}

// broken are broken responses with an image, and the ends of their connections.
var broken = map[string][2]string{
	"closed":    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nim", "close"},
	"reset":     {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nim", "reset"},
	"silent":    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nim", "silence"},
	"malformed": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n", "close"},
}

// brokenAnswer returns a response and the end of its connection. The first response with each image breaks, and the
// first two streams of three events.
func brokenAnswer(r *http.Request, attempt int) (text, end string) {
	if !strings.HasSuffix(r.URL.Path, "/events") {
		if attempt == 1 {
			answer := broken[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
			return answer[0], answer[1]
		}
		return "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nimage", "close"
	}
	text = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nretry: 1\n\n"
	for id := must(strconv.Atoi(r.Header.Get("Last-Event-ID"))) + 1; id <= 3; id++ {
		text += fmt.Sprintf("id: %d\ndata: {\"id\": \"%d\", \"type\": \"halcyon.image.started\", "+
			"\"time\": \"2026-11-21T10:31:07Z\", \"data\": {\"job\": {\"id\": \"j\"}}}\n\n", id, id)
		if attempt <= 2 {
			text += "id: 9\ndata: {\"id\""
			break
		}
	}
	if attempt == 2 {
		return text, "reset"
	}
	return text, "silence"
}

func brokenResponse(ctx context.Context) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	defer listener.Close()
	var mutex sync.Mutex
	attempts := map[string]int{}
	serve := func(connection net.Conn) {
		defer connection.Close()
		request, err := http.ReadRequest(bufio.NewReader(connection))
		if err != nil {
			return
		}
		mutex.Lock()
		attempts[request.URL.Path]++
		text, end := brokenAnswer(request, attempts[request.URL.Path])
		mutex.Unlock()
		io.WriteString(connection, text)
		switch end {
		case "reset":
			connection.(*net.TCPConn).SetLinger(0)
		case "silence":
			connection.Read(make([]byte, 1)) // Until the client closes the connection.
		}
	}
	go func() {
		for connection, err := listener.Accept(); err == nil; connection, err = listener.Accept() {
			go serve(connection)
		}
	}()
	reader := newClient("http://"+listener.Addr().String(), halcyon.Config{ReadTimeout: 250 * time.Millisecond})
	for key := range broken {
		equal(string(must(reader.StoredImage(ctx, key))), "image")
	}
	events := must(reader.Subscribe(ctx, halcyon.EventFilter{}, "0"))
	defer events.Close()
	for _, cursor := range []string{"1", "2", "3"} {
		next(events)
		equal(events.Message().Cursor, cursor)
	}
}

func info(ctx context.Context) {
	source := photograph("coffee.jpg", 0).Source
	facts := must(client.Info(ctx, halcyon.Job{Source: source, Output: halcyon.Output{PHash: true}}))
	ready := must(client.SubmitAndWait(ctx, halcyon.Job{Source: source, Output: halcyon.Output{PHash: true, Info: &halcyon.InfoOptions{}}}))
	equal(ready.Variants[0].Info.PHash, facts.PHash)
	equal(ready.Variants[0].Width, facts.Width)
	equal(facts.Format, halcyon.JPEG)
	equal(len(facts.PHash), 16)
	located := must(client.Info(ctx, halcyon.Job{Source: source, Output: halcyon.Output{Info: &halcyon.InfoOptions{Location: true}}}))
	equal(located.Location == nil, true)
	_, err := client.Info(ctx, photograph("none.jpg", 0))
	isError(err, halcyon.KindNotFound)
}

func infoMembers(ctx context.Context) {
	text := string(must(os.ReadFile(os.Getenv("HALCYON_INFO"))))
	// Every object has a member of a later version.
	answer := strings.ReplaceAll(text, "{", `{"later": {}, `)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, answer) }))
	defer server.Close()
	facts := must(newClient(server.URL, halcyon.Config{}).Info(ctx, halcyon.Job{Source: "initials:A"}))
	var got, want any
	check(json.Unmarshal(must(json.Marshal(facts)), &got))
	check(json.Unmarshal([]byte(text), &want))
	equal(got, want)
	equal(facts.Video, &halcyon.VideoInfo{Codec: "h264", Duration: 12500})
	equal([]any{*facts.EXIF.Flash, facts.EXIF.ISO, facts.Location.Longitude, facts.Faces[1].X}, []any{true, 400.0, -13.25, 300})
	var event halcyon.Event
	check(json.Unmarshal([]byte(`{"id": "1", "type": "halcyon.image.ready", "time": "2026-11-21T10:31:07Z", "data": {
		"job": {"id": "a"}, "variants": [{"key": "halcyon:{00}:01", "format": "json", "info": `+answer+`}]}}`), &event))
	equal(event.Ready.Variants[0].Info, facts)
}

func fetchStored(ctx context.Context) {
	ready := must(client.SubmitAndWait(ctx, photograph("coffee.jpg", 60)))
	equal(verify(ready.Variants[0], must(client.StoredImage(ctx, ready.Key))), 60.0)
	_, err := client.StoredImage(ctx, "halcyon:{"+strings.Repeat("0", 32)+"}:"+strings.Repeat("0", 32))
	isError(err, halcyon.KindNotFound)
	rendered := must(client.Render(ctx, photograph("coffee.jpg", 60)))
	equal(verify(ready.Variants[0], rendered), 60.0)
}

func fetchInline(ctx context.Context) {
	job := photograph("coffee.jpg", 61)
	job.Delivery = halcyon.DeliverInline
	variant := must(client.SubmitAndWait(ctx, job)).Variants[0]
	unreachable := newClient("http://127.0.0.1:1", halcyon.Config{RetryTimeout: -1})
	equal(verify(variant, must(unreachable.ImageData(ctx, variant))), 61.0)
}

func fetchOneRead(ctx context.Context) {
	job := halcyon.Job{
		Source: source("no-store/coffee.jpg"),
		Output: halcyon.Output{Width: 1200, Height: 900, Format: halcyon.PNG},
		Cache:  &halcyon.Cache{Memory: halcyon.Ptr(false), Store: halcyon.StoreExcluded},
	}
	variant := must(client.SubmitAndWait(ctx, job)).Variants[0]
	expect(variant.Data == nil && strings.Contains(variant.Key, ":handoff:"), "%s is no one-read key", variant.Key)
	equal(verify(variant, must(client.ImageData(ctx, variant))), 1200.0)
	_, err := client.ImageData(ctx, variant)
	isError(err, halcyon.KindNotFound)
}

func fetchStoreURL(ctx context.Context) {
	job := photograph("coffee.jpg", 62)
	job.Cache = &halcyon.Cache{Store: halcyon.StoreRequired}
	variant := must(client.SubmitAndWait(ctx, job)).Variants[0]
	expect(strings.HasPrefix(variant.URL, sources+"/store/"), "the public URL is %q", variant.URL)
	equal(verify(variant, must(client.Download(ctx, variant.URL))), 62.0)
	// The first response of the store to each URL breaks.
	location := variant.URL + "?broken=" + name("redirect")
	redirecting := newProxy(func(_ int, w http.ResponseWriter, r *http.Request) bool { // gateway.redirectsToStore
		http.Redirect(w, r, location, http.StatusFound)
		return true
	})
	defer redirecting.Close()
	reader := newClient(redirecting.URL, halcyon.Config{Key: key})
	equal(verify(variant, must(reader.StoredImage(ctx, variant.Key))), 62.0)
	location = "/v1/batches"
	_, err := reader.StoredImage(ctx, variant.Key)
	isError(err, halcyon.ErrInvalidResponse)
	equal(len(redirecting.bodies), 3)
	// The gateway no longer has the result.
	variant.URL += "?broken=" + name("url")
	variant.Key = "halcyon:{" + strings.Repeat("0", 32) + "}:" + strings.Repeat("0", 32)
	equal(verify(variant, must(client.ImageData(ctx, variant))), 62.0)
}

func fetchPut(ctx context.Context) {
	job := halcyon.Job{
		Source: source("coffee.jpg"), Variants: []halcyon.Output{{Name: "a", Width: 63}, {Name: "b", Width: 64}},
		Delivery: halcyon.DeliverPut(sources + "/put/" + run + "/{variant}.{format}"),
		Cache:    &halcyon.Cache{Memory: halcyon.Ptr(false), Store: halcyon.StoreExcluded},
	}
	for index, variant := range must(client.SubmitAndWait(ctx, job)).Variants {
		equal(variant.Put, sources+"/put/"+run+"/"+variant.Name+".jpeg")
		equal(verify(variant, must(client.ImageData(ctx, variant))), float64(63+index))
	}
	job.Delivery = halcyon.DeliverPut(sources + "/put/" + run + "/images/{variant}.{format}")
	for index, each := range must(client.Images(ctx, job)) {
		equal(each.Put, sources+"/put/"+run+"/images/"+each.Name+".jpeg")
		equal(verify(each.Variant, each.Data), float64(63+index))
	}
	secret := sources + "/put/" + run + "/secret?signature=5f3a"
	job.Variants, job.Output, job.Delivery = nil, halcyon.Output{Width: 69}, halcyon.DeliverPut(secret)
	_, err := client.Image(ctx, job)
	isError(err, halcyon.ErrNotDelivered)
	uploaded := must(http.Get(secret))
	defer uploaded.Body.Close()
	equal(uploaded.StatusCode, http.StatusOK)
}

func batchOfJobs(ctx context.Context) {
	jobs := []halcyon.Job{
		photograph("coffee.jpg", 65), photograph("coffee.jpg", 66), photograph("none.jpg", 66), photograph("coffee.jpg", -1),
	}
	id := name("batch")
	submission := must(client.CreateBatch(ctx, jobs, halcyon.BatchOptions{ID: id, Priority: halcyon.PriorityLow}))
	equal([]any{submission.ID, submission.Accepted, submission.Rejected, len(submission.Problems)}, []any{id, 3, 1, 1})
	equal(submission.Problems[0].Line, 4)
	isError(submission.Problems[0].Problem, halcyon.CodeInvalidJob)
	batch := must(client.WaitBatch(ctx, id))
	equal([]any{*batch.Total, batch.Ended, batch.Counts.Ready, batch.Counts.Failed}, []any{3, 3, 2, 1})
	expect(batch.CompletedAt != nil && !batch.CompletedAt.Before(batch.CreatedAt), "%v", batch)
	listed := false
	for _, each := range must(client.Batches(ctx, 1000)) {
		listed = listed || each.ID == id
	}
	expect(listed, "the batch is not listed")

	options := halcyon.BatchOptions{ID: name("parts"), Open: true}
	must(client.CreateBatch(ctx, jobs[:1], options))
	equal(must(client.Batch(ctx, options.ID)).State, halcyon.BatchOpen)
	options.First = 1
	must(client.CreateBatch(ctx, jobs[1:2], options))
	must(client.CloseBatch(ctx, options.ID, 2))
	equal(must(client.WaitBatch(ctx, options.ID)).Counts.Ready, 2)
	_, err := client.Batch(ctx, name("no-batch"))
	isError(err, halcyon.KindNotFound)
}

func batchOfTemplate(ctx context.Context) {
	template := halcyon.Job{Output: halcyon.Output{Width: 67, Format: halcyon.PNG}}
	images := []halcyon.Source{source("coffee.jpg"), source("chelsea.jpg")}
	submission := must(client.CreateBatchFromTemplate(ctx, template, images, halcyon.BatchOptions{}))
	equal(submission.Accepted, 2)
	equal(must(client.WaitBatch(ctx, submission.ID)).Counts.Ready, 2)
	template.Source = images[1]
	stored := must(client.StoredImage(ctx, must(halcyon.ResultKeys(template))[0]))
	config, format, err := image.DecodeConfig(bytes.NewReader(stored))
	check(err)
	equal([]any{config.Width, format}, []any{67, "png"})

	template.Source = ""
	listed := must(client.CreateBatchFromPrefix(ctx, template, "s3://no-such-bucket/a/", halcyon.BatchOptions{}))
	batch := must(client.WaitBatch(ctx, listed.ID))
	equal(batch.Prefix, "s3://no-such-bucket/a/")
	expect(batch.Error != nil && batch.Error.Code == halcyon.CodeNotFound, "%v", batch.Error)
}

func batchFailures(ctx context.Context) {
	jobs := []halcyon.Job{
		photograph("none.jpg", 68), photograph("coffee.jpg", 68), photograph("gone.jpg", 68), photograph("none.jpg", 69),
	}
	id := must(client.CreateBatch(ctx, jobs, halcyon.BatchOptions{})).ID
	equal(must(client.WaitBatch(ctx, id)).Counts.Failed, 3)
	failures := must(client.BatchFailures(ctx, id, 0, 2))
	equal(len(failures), 2)
	failures = append(failures, must(client.BatchFailures(ctx, id, 2, 2))...)
	codes := map[int]halcyon.FailureCode{}
	for _, failure := range failures {
		codes[*failure.Index] = failure.Code
		equal(failure.Job, fmt.Sprintf("%s-%d", id, *failure.Index))
		expect(failure.Message != "" && failure.Record != "", "%v", failure)
	}
	equal(codes, map[int]halcyon.FailureCode{0: halcyon.CodeNotFound, 2: halcyon.CodeGone, 3: halcyon.CodeNotFound})
}

func batchCancel(ctx context.Context) {
	id := must(client.CreateBatch(ctx, []halcyon.Job{hanging(), hanging()}, halcyon.BatchOptions{})).ID
	must(client.CancelBatch(ctx, id))
	batch := must(client.WaitBatch(ctx, id))
	equal(batch.Counts.Cancelled, 2)
	expect(batch.CancelledAt != nil, "%v", batch)
	_, err := client.CancelBatch(ctx, id)
	isError(err, halcyon.KindConflict)
}

func batchRetry(ctx context.Context) {
	late := "put/" + name("late.jpg")
	jobs := []halcyon.Job{photograph(late, 70), photograph("coffee.jpg", 70)}
	id := must(client.CreateBatch(ctx, jobs, halcyon.BatchOptions{})).ID
	equal(must(client.WaitBatch(ctx, id)).Counts.Failed, 1)
	file := must(client.Download(ctx, sources+"/coffee.jpg"))
	upload := must(http.NewRequestWithContext(ctx, "PUT", sources+"/"+late, bytes.NewReader(file)))
	must(http.DefaultClient.Do(upload)).Body.Close()
	retry := must(client.RetryBatch(ctx, id, halcyon.BatchOptions{ID: name("retry")}))
	equal([]any{retry.ID, retry.Accepted, retry.Missing}, []any{name("retry"), 1, 0})
	counts := must(client.WaitBatch(ctx, retry.ID)).Counts
	equal([]any{counts.Ready, counts.Failed}, []any{1, 0})
	_, err := client.RetryBatch(ctx, retry.ID, halcyon.BatchOptions{})
	isError(err, halcyon.KindConflict)
}

// preset registers a preset whose results have a width.
func preset(ctx context.Context, suffix string, width float64, overridable ...string) *halcyon.Preset {
	return must(client.PutPreset(ctx, name(suffix), halcyon.PresetTemplate{
		Job:         halcyon.Job{Output: halcyon.Output{Width: width, Format: halcyon.PNG}, MaxAge: 3600},
		Overridable: overridable,
	}))
}

func presetPut(ctx context.Context) {
	put := preset(ctx, "card", 71, "width")
	equal([]any{put.Name, put.Version, put.Origin}, []any{name("card"), int64(1), "registered"})
	equal(put.Overridable, []string{"width"})
	equal(preset(ctx, "card", 71, "width").Version, int64(1))
	equal(preset(ctx, "card", 72).Version, int64(2))
	var fields struct{ Width float64 }
	check(json.Unmarshal(must(client.Preset(ctx, put.Name)).Job, &fields))
	equal(fields.Width, 72.0)
	listed := false
	for _, each := range must(client.Presets(ctx)) {
		listed = listed || each.Name == put.Name && each.Version == 2
	}
	expect(listed, "the preset is not listed")
	check(client.DeletePreset(ctx, put.Name))
	_, err := client.Preset(ctx, put.Name)
	isError(err, halcyon.KindNotFound)
	isError(client.DeletePreset(ctx, put.Name), halcyon.KindNotFound)
}

func presetJob(ctx context.Context) {
	put := preset(ctx, "job", 73, "width")
	job := halcyon.Job{Source: source("coffee.jpg"), Preset: halcyon.PresetName(put.Name)}
	loaded := must(client.Image(ctx, job))
	equal([]any{verify(loaded.Variant, loaded.Data), loaded.Format}, []any{73.0, halcyon.PNG})
	equal(loaded.Ready.Job.Preset.Name, put.Name)
	job.Preset, job.Width = halcyon.PresetVersion(put.Name, put.Version), 74
	loaded = must(client.Image(ctx, job))
	equal(verify(loaded.Variant, loaded.Data), 74.0)
	job.Quality = 50
	_, err := client.Submit(ctx, job)
	isError(err, halcyon.KindInvalidJob)
	expect(strings.Contains(err.Error(), "quality"), "%v", err)
	check(client.DeletePreset(ctx, put.Name))
}

func rerender(ctx context.Context) {
	put := preset(ctx, "again", 75)
	job := fresh("coffee.jpg", 0)
	job.Preset = halcyon.PresetName(put.Name)
	must(client.SubmitAndWait(ctx, job))
	// A worker may not have been told of the change yet, unless a job requires the new version.
	other := fresh("chelsea.jpg", 0)
	other.Preset = halcyon.PresetVersion(put.Name, preset(ctx, "again", 76).Version)
	other.Cache = &halcyon.Cache{Memory: halcyon.Ptr(false)}
	must(client.SubmitAndWait(ctx, other))
	batch := must(client.WaitBatch(ctx, must(client.Rerender(ctx, put.Name, halcyon.RerenderOptions{})).ID))
	equal([]any{batch.Counts.Ready, batch.Counts.Failed, batch.Preset}, []any{1, 0, put.Name})
	result := halcyon.Job{Source: job.Source, Output: halcyon.Output{Width: 76, Format: halcyon.PNG}}
	stored := must(client.StoredImage(ctx, must(halcyon.ResultKeys(result))[0]))
	config, _, err := image.DecodeConfig(bytes.NewReader(stored))
	check(err)
	equal(config.Width, 76)
	check(client.DeletePreset(ctx, put.Name))
}

func signedURL(ctx context.Context) {
	keyID, secret, _ := strings.Cut(os.Getenv("HALCYON_SIGNING_KEY"), ":")
	signer, soon := halcyon.URLSigner{KeyID: keyID, Secret: secret}, time.Now().Add(time.Minute)
	get := func(address string, status int) []byte {
		response := must(http.DefaultClient.Do(must(http.NewRequestWithContext(ctx, "GET", address, nil))))
		defer response.Body.Close()
		expect(response.StatusCode == status, "%s: %s", address, response.Status)
		if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
			return nil
		}
		return must(io.ReadAll(response.Body))
	}
	width := func(file []byte) int {
		config, _, err := image.DecodeConfig(bytes.NewReader(file))
		check(err)
		return config.Width
	}
	job := photograph("coffee.jpg", 77)
	rendering := must(client.RenderURL(job))
	get(rendering, 401)
	signed := must(signer.Sign(rendering, soon))
	equal(width(get(signed, 200)), 77)
	get(strings.Replace(signed, "width=77", "width=78", 1), 403)
	get(must(signer.Sign(rendering, time.Now().Add(-2*time.Second))), 403)
	get(must(halcyon.URLSigner{KeyID: keyID, Secret: strings.Repeat("0", 32)}.Sign(rendering, soon)), 403)
	equal(width(get(must(signer.Sign(client.ImageURL(must(halcyon.ResultKeys(job))[0]), soon)), 200)), 77)
	put := preset(ctx, "signed", 79)
	job = halcyon.Job{Source: source("coffee.jpg"), Preset: halcyon.PresetName(put.Name)}
	equal(width(get(must(signer.Sign(must(client.RenderURL(job)), soon)), 200)), 79)
	check(client.DeletePreset(ctx, put.Name))
	filter := halcyon.EventFilter{Types: []halcyon.EventType{halcyon.EventReady}}
	get(client.EventsURL(filter), 401)
	get(must(signer.Sign(client.EventsURL(filter), soon)), 200)

	example := halcyon.URLSigner{KeyID: "1", Secret: "0123456789abcdef0123456789abcdef"}
	images := newClient("https://images.example.org", halcyon.Config{})
	address := must(images.RenderURL(halcyon.Job{
		Source: "https://example.org/cat.jpg", Output: halcyon.Output{Width: 400},
	}))
	equal(must(example.Sign(address, time.Unix(1790000000, 0))), "https://images.example.org/v1/render?"+
		"source=https%3A%2F%2Fexample.org%2Fcat.jpg&width=400&keyId=1&expires=1790000000"+
		"&signature=fa2e1359ceb8e94b2c9b81f45da9ee7ad5487a0497cad0e391f2e397db998c14")
}

func resultKeys(ctx context.Context) {
	var file struct {
		Vectors []struct {
			Name, SourceText   string
			Job                json.RawMessage
			VariantTexts, Keys []string
		}
	}
	check(json.Unmarshal(must(os.ReadFile(os.Getenv("HALCYON_KEY_VECTORS"))), &file))
	expect(len(file.Vectors) >= 209, "%d vectors", len(file.Vectors))
	for _, vector := range file.Vectors {
		texts := must(halcyon.CanonicalTextsOf(vector.Job))
		expect(texts.Source == vector.SourceText && reflect.DeepEqual(texts.Variants, vector.VariantTexts),
			"%s: %q", vector.Name, texts)
		equal(must(halcyon.ResultKeys(vector.Job)), vector.Keys)
	}
	job := photograph("coffee.jpg", 80)
	job.Processors = []halcyon.Processor{halcyon.RoundCorner(halcyon.Points(8.5), "gold"), halcyon.BlackWhite}
	equal(must(client.SubmitAndWait(ctx, job)).Key, must(halcyon.ResultKeys(job))[0])
	// The margins around the letters are removed, and the event says what remained.
	job = halcyon.Job{Source: halcyon.Initials("JD", "", ""), Output: halcyon.Output{
		Trim: &halcyon.Trim{Tolerance: halcyon.Ptr(20)}, Before: []halcyon.Processor{halcyon.BlackWhite}, Format: halcyon.PNG,
	}}
	variant := must(client.SubmitAndWait(ctx, job)).Variants[0]
	expect(variant.Trim != nil && variant.Trim.X > 0 && variant.Trim.Y > 0, "%v", variant)
	equal([]int{variant.Trim.Width, variant.Trim.Height}, []int{variant.Width, variant.Height})
	equal(variant.Key, must(halcyon.ResultKeys(job))[0])
}

func kafkaJob(ctx context.Context) {
	var want any
	check(json.Unmarshal(must(os.ReadFile(os.Getenv("HALCYON_JOB"))), &want))
	// Halcyon treats these members as absent, and the package leaves them out.
	fields := want.(map[string]any)
	for _, name := range []string{"lossless", "prefetch"} {
		equal(fields[name], false)
		delete(fields, name)
	}
	delete(fields["cache"].(map[string]any), "onlyIfCached")
	delete(fields["processors"].([]any)[14].(map[string]any)["watermark"].(map[string]any), "tiled")
	fields["processors"].([]any)[9] = "blackWhite"
	// The package writes true as an object without members.
	fields["variants"].([]any)[0].(map[string]any)["trim"] = map[string]any{}
	var got any
	check(json.Unmarshal(must(json.Marshal(fullJob)), &got))
	for name, value := range fields {
		equal(got.(map[string]any)[name], value)
	}
	equal(got, want)

	job := fresh("coffee.jpg", 81)
	job.ID = name("kafka")
	events := must(client.Subscribe(ctx, halcyon.EventFilter{Jobs: []string{job.ID}}, ""))
	defer events.Close()
	producer := exec.CommandContext(ctx, "bash", "-c", os.Getenv("HALCYON_PRODUCE"))
	producer.Stdin = bytes.NewReader(append(must(json.Marshal(job)), '\n'))
	check(producer.Run())
	event := next(events)
	for !event.Type.EndsJob() {
		event = next(events)
	}
	variant := must(event.Result()).Variants[0]
	equal(verify(variant, must(client.ImageData(ctx, variant))), 81.0)
}

// fullJob is the job of job.json.
var fullJob = halcyon.Job{
	ID:     "article-17-hero",
	Source: halcyon.URLWithCacheKey("https://example.org/cat.jpg?size=large", "cat-7"),
	Alternatives: []halcyon.Source{
		"s3://pictures/cat.jpg", halcyon.Initials("JD", "#306ba6", "white"),
		halcyon.VideoFrame("https://example.org/cat.mp4", 1.5),
	},
	Fallback: halcyon.NoFallback,
	Output: halcyon.Output{
		Width: 400, Height: 300, ScreenScale: 2, ContentMode: halcyon.ScaleAspectFill,
		ScaleOptions: halcyon.FillLeavesExcess, CropRect: &halcyon.CropRect{X: 0.5, Width: 0.5, Height: 1}, Position: halcyon.TopLeft,
		Trim: &halcyon.Trim{Tolerance: halcyon.Ptr(20), Background: "white", Fuzz: 0.01}, LinearLight: true,
		Before:         []halcyon.Processor{halcyon.Normalize(2, 98.5), halcyon.Rotate(3, "")},
		SizeForDisplay: halcyon.Ptr(true), Gravity: halcyon.GravityPoint(0.3, 0.25), Upscale: halcyon.Ptr(false),
		InterpolationQuality: halcyon.InterpolationMedium, Background: "#ffffff",
		Processors: []halcyon.Processor{
			halcyon.RoundCorner(halcyon.Points(12), "white", halcyon.TopLeft, halcyon.TopRight),
			halcyon.Resize(200, 100, "aspectFit"), halcyon.Crop(100, 80, 0.25, 0.75), halcyon.Blur(2.5),
			halcyon.Tint("#336699"), halcyon.OverlayColor("black", 0.3),
			halcyon.OverlayImage("https://example.org/frame.png", 0.8), halcyon.Blend("multiply", "red", 0.5),
			halcyon.ColorControls(0.1, 1.2, 0.9, 0.5), halcyon.BlackWhite,
			halcyon.Border(2, "navy", halcyon.WidthFraction(0.5)), halcyon.Downsample(90, 90), halcyon.Sharpen(0.7, 1.5),
			halcyon.Pixelate(8), halcyon.Watermark{
				Source: "file:///srv/logo.png", Position: halcyon.TopRight, Margin: 4, WidthFraction: 0.2,
				Opacity: halcyon.Ptr(0.6),
			}.Processor(), halcyon.Rotate(90, "transparent"), halcyon.Flip("both"),
			halcyon.Pad{Top: 1, Right: 2, Bottom: 3, Left: 4, Fill: "color", Color: "gold"}.Processor(),
			halcyon.Pad{All: 10, Fill: "mirror"}.Processor(), halcyon.Text{
				Text: "Größe\n50 \\ 100", Font: "DejaVu Sans", Bold: true, Italic: true, Size: 24, Width: 180, Height: 60,
				Align: "center", Color: "white", OutlineWidth: 2, OutlineColor: "#333333", Opacity: halcyon.Ptr(0.9),
				Position: halcyon.Bottom, Margin: 8, Offset: &halcyon.Offset{X: -3, Y: 1.5},
			}.Processor(), halcyon.Mask("heart"), halcyon.MaskImage("https://example.org/mask.png"), halcyon.Hue(30),
			halcyon.Gamma(1.8), halcyon.Normalize(1, 99), halcyon.Duotone("navy", "gold"),
			halcyon.BlurFaces(halcyon.FaceArea{Amount: 0.5, Margin: halcyon.Ptr(0.1), Confidence: halcyon.Ptr(0.4)}),
			halcyon.PixelateFaces(halcyon.FaceArea{Cells: 6, Margin: halcyon.Ptr(0.1), Confidence: halcyon.Ptr(0.4)}),
			halcyon.BlendImage("https://example.org/frame.png", "softLight", 1), halcyon.Watermark{
				Source: "file:///srv/logo.png", Position: halcyon.Left, Margin: 2, Scale: 0.5,
				Offset: &halcyon.Offset{X: 5, Y: -6}, Opacity: halcyon.Ptr(1.0), Mode: "luminosity", Tiled: true,
			}.Processor(),
		},
		Format: halcyon.WebP, Quality: 80, Effort: halcyon.Ptr(4), Progressive: true, StripMetadata: halcyon.Ptr(false),
		KeepProfile: true, MaximumBytes: 50000, AllowResize: true, NearLossless: true, ChromaSubsampling: "4:4:4", BitDepth: 8,
		Quantize: &halcyon.Quantization{Colors: 16, Dither: halcyon.Ptr(0.5)}, Profile: "srgb", Page: 2, Frames: 1, Tolerance: halcyon.ToleranceTruncated, BlurHash: true, DominantColor: true,
		Palette: true, ThumbHash: true, PHash: true, Faces: true, Info: &halcyon.InfoOptions{Location: true},
	},
	Variants: []halcyon.Output{
		{Name: "large", Width: 1600, Format: halcyon.AVIF, Trim: &halcyon.Trim{}},
		{Name: "small", Sizer: halcyon.AspectScaleDownByWidth(400), TargetSimilarity: 0.98, Format: halcyon.Best},
		{Name: "dot", Gravity: halcyon.GravityAttention, CropRect: &halcyon.CropRect{
			X: 40, Y: 30, Width: 600, Height: 400, Unit: "pixels",
		}},
	},
	Partial: true, MaxAge: 3600,
	Cache: &halcyon.Cache{
		Memory: halcyon.Ptr(true), Store: halcyon.StoreRequired, Source: halcyon.Ptr(false), Reload: true,
	},
	Tenant: "shop-7", Headers: map[string]string{"Accept": "image/webp", "X-Client": "conformance"},
	Tags: []string{"article-17", "hero"}, Slot: "article-17/hero", Generation: halcyon.Ptr[int64](1795257067290),
	Delivery: halcyon.DeliverPut("https://bucket.example.org/items/7/{variant}.{format}"),
	Priority: halcyon.PriorityHigh, Refresh: halcyon.RefreshBeforeExpiry,
	NotBefore: halcyon.At(time.Date(2026, 11, 21, 10, 31, 7, 0, time.UTC)), Deadline: halcyon.After(30 * time.Second),
	Metadata: map[string]any{"article": 17}, Placeholder: "LEHV6nWB2yk8", AltText: "a cat",
	Preset: halcyon.PresetVersion("card", 3), Batch: &halcyon.BatchPosition{ID: "catalogue-1", Index: halcyon.Ptr(0)},
	Webhook: "shop",
}

func unauthorized(ctx context.Context) {
	counting := newProxy(func(int, http.ResponseWriter, *http.Request) bool { return false })
	defer counting.Close()
	for index, wrong := range []string{"", "wrong-key-0123456789"} {
		stranger := newClient(counting.URL, halcyon.Config{Key: wrong})
		_, err := stranger.Submit(ctx, photograph("coffee.jpg", 40))
		isError(err, halcyon.KindUnauthorized)
		_, err = stranger.Subscribe(ctx, halcyon.EventFilter{}, "")
		isError(err, halcyon.KindUnauthorized)
		equal(len(counting.bodies), 2*(index+1))
	}
}

// Jobs.

func newClient(address string, config halcyon.Config) *halcyon.Client {
	return must(halcyon.New(address, config))
}

func name(suffix string) string { return run + "-" + suffix }

func source(path string) halcyon.Source { return halcyon.Source(sources + "/" + path) }

func photograph(path string, width float64) halcyon.Job {
	return halcyon.Job{Source: source(path), Output: halcyon.Output{Width: width}}
}

var unique int

// fresh returns a job whose result is not stored yet.
func fresh(path string, width float64) halcyon.Job {
	unique++
	return photograph(fmt.Sprintf("%s?%s-%d", path, run, unique), width)
}

// hanging returns a job whose source does not respond.
func hanging() halcyon.Job {
	unique++
	return photograph(fmt.Sprintf("hang/%s-%d", run, unique), 40)
}

// Assertions. They panic, which ends the check.

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) { expect(err == nil, "%v", err) }

func expect(condition bool, format string, arguments ...any) {
	if !condition {
		panic(fmt.Sprintf(format, arguments...))
	}
}

func equal(got, want any) { expect(reflect.DeepEqual(got, want), "%v is not %v", got, want) }

func isError(err, target error) { expect(errors.Is(err, target), "%v is not %v", err, target) }

// verify compares an image with its description, and returns its width.
func verify(variant halcyon.Variant, file []byte) float64 {
	sum := sha256.Sum256(file)
	equal(hex.EncodeToString(sum[:]), variant.SHA256)
	equal(int64(len(file)), variant.Bytes)
	config, format, err := image.DecodeConfig(bytes.NewReader(file))
	check(err)
	equal([]any{config.Width, config.Height, halcyon.Format(format)}, []any{variant.Width, variant.Height, variant.Format})
	return float64(config.Width)
}
