// Package halcyon is a client of Halcyon, a cluster of workers that load, resize and cache images.
//
//	client, err := halcyon.New("http://127.0.0.1:8080", halcyon.Config{})
//	image, err := client.Image(ctx, halcyon.Job{
//		Source: "https://example.org/cat.jpg",
//		Output: halcyon.Output{Width: 400, Height: 300},
//	})
//
// Requests are repeated while the gateway is unreachable or overloaded. That is safe: a job keeps its id when it is sent
// again. All methods take a context. When it is done, they return an error that wraps the error of the context.
package halcyon

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Version is the version of this package, and of the Halcyon that it belongs to.
const Version = "0.1.0"

// Config has the settings of a client. Zero values stand for the defaults.
type Config struct {
	// Key is one of the API keys of the gateway, if it has any. It is sent to this gateway only: redirects of a gateway
	// to its result store are followed without it.
	Key string
	// HTTPClient sends the requests. Its Timeout should be 0, because requests for the end of a job take long. Default:
	// a client with connections of its own.
	HTTPClient *http.Client
	// RetryTimeout is the time for which a request is repeated while the gateway is unreachable or overloaded. With a
	// negative value, the first response counts. Default: 30 s.
	RetryTimeout time.Duration
	// MaximumBackoff is the longest pause between repetitions, plus a random part of up to a half, unless the gateway
	// asks for a longer one. Default: 30 s.
	MaximumBackoff time.Duration
	// JobTimeout is the time for which the end of a job is awaited. Default: 5 min.
	JobTimeout time.Duration
	// LongPollInterval is the time for which one request waits for the end of a job. Default: 25 s.
	LongPollInterval time.Duration
	// ReadTimeout is the time without a byte after which a connection counts as lost. It must be longer than
	// gateway.keepAliveInterval (15 s). Default: 60 s.
	ReadTimeout time.Duration
	// MaximumImageBytes is the maximum size of an image. Default: 64 MiB.
	MaximumImageBytes int64
	// MaximumEventBytes is the maximum size of an event in a stream. Default: 4 MiB.
	MaximumEventBytes int64
	// MaximumResponseBytes is the maximum size of any other response. Default: 16 MiB.
	MaximumResponseBytes int64
}

// Client is a client of a cluster, connected to one of its gateways. It can be used by several goroutines.
type Client struct {
	base   *url.URL
	http   *http.Client
	config Config
}

// New creates a client. Nothing is sent yet. The URL is that of a gateway, such as "https://images.example.org", with or
// without a path in front of /v1.
func New(gateway string, config Config) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(gateway, "/"))
	if err != nil {
		return nil, fmt.Errorf("halcyon: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("halcyon: %q is not the URL of a gateway", gateway)
	}
	setDefault(&config.RetryTimeout, 30*time.Second)
	setDefault(&config.MaximumBackoff, 30*time.Second)
	setDefault(&config.JobTimeout, 5*time.Minute)
	setDefault(&config.LongPollInterval, 25*time.Second)
	setDefault(&config.ReadTimeout, time.Minute)
	setDefault(&config.MaximumImageBytes, 64<<20)
	setDefault(&config.MaximumEventBytes, 4<<20)
	setDefault(&config.MaximumResponseBytes, 16<<20)
	client := http.Client{}
	if config.HTTPClient != nil {
		client = *config.HTTPClient
	} else if transport, is := http.DefaultTransport.(*http.Transport); is {
		transport = transport.Clone()
		// Many jobs may be awaited at the same time.
		transport.MaxIdleConnsPerHost = 64
		client.Transport = transport
	}
	// The key must not follow a redirect.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: base, http: &client, config: config}, nil
}

func setDefault[T time.Duration | int64](value *T, standard T) {
	if *value == 0 {
		*value = standard
	}
}

// request is a request to a gateway that may be repeated.
type request struct {
	method      string
	target      string // the path and the query
	contentType string
	body        []byte
	limit       int64         // the maximum size of the response
	wait        time.Duration // the time for which the gateway may wait before it responds
	completes   bool          // an attempt continues when the context is done; only repetitions end
	repeated    bool          // set if an attempt had no definite result, so that the request may have been carried out
}

type response struct {
	status int
	header http.Header
	body   []byte
}

// send sends a request until it succeeds, for up to RetryTimeout.
func (c *Client) send(ctx context.Context, r *request) (*response, error) {
	if r.limit == 0 {
		r.limit = c.config.MaximumResponseBytes
	}
	return repeat(ctx, c.config, func() (*response, error) {
		attempt := ctx
		if r.completes {
			attempt = detached{ctx}
		}
		response, err := c.attempt(attempt, r)
		if IsTemporary(err) {
			r.repeated = true
		}
		return response, err
	})
}

// repeat calls a function until it succeeds or its error is final, for up to RetryTimeout.
func repeat[T any](ctx context.Context, config Config, attempt func() (T, error)) (T, error) {
	var none T
	backoff := backoff{base: 200 * time.Millisecond, maximum: config.MaximumBackoff}
	var deadline time.Time
	for {
		if err := ctx.Err(); err != nil {
			return none, contextError(err)
		}
		result, err := attempt()
		if err == nil || !IsTemporary(err) {
			return result, err
		}
		now := time.Now()
		if deadline.IsZero() {
			deadline = now.Add(config.RetryTimeout)
		}
		pause := backoff.next(retryAfterOf(err))
		if !now.Add(pause).Before(deadline) {
			return none, err
		}
		if err := sleep(ctx, pause); err != nil {
			return none, contextError(err)
		}
	}
}

// attempt sends a request once and reads its response.
func (c *Client) attempt(ctx context.Context, r *request) (*response, error) {
	stream, err := c.open(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	body, err := readAll(stream, r.limit)
	if err != nil {
		return nil, stream.explain(err)
	}
	return &response{stream.status, stream.header, body}, nil
}

// open sends a request once and returns its response without reading it. The result has a status below 400.
func (c *Client) open(ctx context.Context, r *request, header http.Header) (*stream, error) {
	request, err := http.NewRequest(r.method, c.base.String()+r.target, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("halcyon: %w", err)
	}
	request.Header.Set("User-Agent", "halcyon-go/"+Version)
	if r.contentType != "" {
		request.Header.Set("Content-Type", r.contentType)
	}
	if c.config.Key != "" {
		request.Header.Set("Authorization", "Bearer "+c.config.Key)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	return c.do(ctx, request, r.wait)
}

// do sends a request and watches the time in which nothing arrives.
func (c *Client) do(ctx context.Context, request *http.Request, wait time.Duration) (*stream, error) {
	inner, cancel := context.WithCancel(ctx)
	s := &stream{parent: ctx, cancel: cancel, timeout: c.config.ReadTimeout}
	s.timer = time.AfterFunc(s.timeout+wait, cancel)
	answer, err := c.http.Do(request.WithContext(inner))
	if err != nil {
		defer s.Close()
		return nil, s.explain(err)
	}
	s.body, s.status, s.header = answer.Body, answer.StatusCode, answer.Header
	s.timer.Reset(s.timeout)
	if s.status >= 400 {
		defer s.Close()
		body, err := readAll(s, 1<<20)
		if err != nil {
			return nil, s.explain(err)
		}
		return nil, newProblem(s.status, s.header, body)
	}
	return s, nil
}

// stream is the body of a response whose request is cancelled if no byte arrives for a while.
type stream struct {
	parent  context.Context
	cancel  context.CancelFunc
	timer   *time.Timer
	timeout time.Duration
	body    io.ReadCloser
	status  int
	header  http.Header
}

func (s *stream) Read(buffer []byte) (int, error) {
	count, err := s.body.Read(buffer)
	if err == nil {
		s.timer.Reset(s.timeout)
	}
	return count, err
}

func (s *stream) Close() error {
	s.timer.Stop()
	s.cancel()
	if s.body == nil {
		return nil
	}
	return s.body.Close()
}

// explain returns the error of the client for one of the connection.
func (s *stream) explain(err error) error {
	if ended := s.parent.Err(); ended != nil {
		return contextError(ended)
	}
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("nothing was received for %v: %w", s.timeout, os.ErrDeadlineExceeded)
	}
	return &ConnectionError{err}
}

func readAll(reader io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(reader, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = fmt.Errorf("%w: %d bytes", ErrTooLarge, limit)
	}
	return body, err
}

// call sends a request and decodes the response.
func call[T any](ctx context.Context, c *Client, r *request) (*T, error) {
	response, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	result := new(T)
	if err := json.Unmarshal(response.body, result); err != nil {
		return nil, invalidResponse(response.body, err)
	}
	return result, nil
}

func contextError(err error) error { return fmt.Errorf("halcyon: %w", err) }

// detached has the values of a context, but neither its end nor its deadline.
type detached struct{ context.Context }

func (detached) Deadline() (time.Time, bool) { return time.Time{}, false }
func (detached) Done() <-chan struct{}       { return nil }
func (detached) Err() error                  { return nil }

// backoff computes random, exponentially growing pauses, so that the clients of a lost gateway do not all return at once.
type backoff struct {
	base, maximum time.Duration
	failures      int
}

// next returns the next pause, plus a random part of up to a half, and at least the time that was asked for.
func (b *backoff) next(least time.Duration) time.Duration {
	pause := b.base << b.failures
	if pause > b.maximum || pause <= 0 {
		pause = b.maximum
	}
	if pause < b.base {
		pause = b.base
	}
	if b.failures < 16 {
		b.failures++
	}
	pause += time.Duration(mathrand.Float64() * float64(pause) / 2)
	if pause < least {
		return least
	}
	return pause
}

func retryAfterOf(err error) time.Duration {
	var problem *ProblemError
	if errors.As(err, &problem) {
		return problem.RetryAfter
	}
	return 0
}

func sleep(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newID returns a random UUID (RFC 9562, version 4).
func newID() string {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		panic(err) // The system has no random numbers.
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// parameters are those of a query, in order.
type parameters [][2]string

func (p *parameters) add(name, value string) { *p = append(*p, [2]string{name, value}) }

// addNonempty adds a parameter unless it is empty.
func (p *parameters) addNonempty(name, value string) {
	if value != "" {
		p.add(name, value)
	}
}

// target returns the path and the query of a request. The path consists of segments below /v1.
func target(query parameters, segments ...string) string {
	var text strings.Builder
	text.WriteString("/v1")
	for _, segment := range segments {
		text.WriteByte('/')
		text.WriteString(percentEncode(segment, ""))
	}
	for index, parameter := range query {
		text.WriteByte("?&"[min(index, 1)])
		text.WriteString(parameter[0] + "=" + percentEncode(parameter[1], ""))
	}
	return text.String()
}

// percentEncode encodes everything but the unreserved characters of RFC 3986 and those of also.
func percentEncode(text, also string) string {
	const unreserved = "-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	var encoded strings.Builder
	for index := 0; index < len(text); index++ {
		if strings.IndexByte(unreserved, text[index]) >= 0 || strings.IndexByte(also, text[index]) >= 0 {
			encoded.WriteByte(text[index])
		} else {
			fmt.Fprintf(&encoded, "%%%02X", text[index])
		}
	}
	return encoded.String()
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}
