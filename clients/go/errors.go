package halcyon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// FailureCode says why a job failed. It is an error, so that a failure can be tested with errors.Is:
//
//	if errors.Is(err, halcyon.CodeNotFound) { … }
//
// A later version of the cluster may send codes that have no constant here.
type FailureCode string

// The failure codes of jobs.
const (
	CodeInvalidJob        FailureCode = "invalid_job"        // the message is not a valid job
	CodeUnsupportedSource FailureCode = "unsupported_source" // the kind of source is not supported
	CodeBlockedAddress    FailureCode = "blocked_address"    // the host of the source has an address that is not allowed
	CodeNotFound          FailureCode = "not_found"          // 404, or no such file or object
	CodeGone              FailureCode = "gone"               // 410
	CodeForbidden         FailureCode = "forbidden"          // 401, 403 or 451, or a file outside of the permitted folders
	CodeHTTPError         FailureCode = "http_error"         // any other error status, or a broken HTTP exchange
	CodeDNSError          FailureCode = "dns_error"          // the host name has no address
	CodeConnectError      FailureCode = "connect_error"      // the connection to the host failed
	CodeOriginUnavailable FailureCode = "origin_unavailable" // too many requests to the host failed before
	CodeTLSError          FailureCode = "tls_error"          // the TLS handshake failed, or the certificate is not trusted
	CodeTimeout           FailureCode = "timeout"            // a time limit was exceeded
	CodeTooManyRedirects  FailureCode = "too_many_redirects" // there were more redirects than allowed
	CodeTooLarge          FailureCode = "too_large"          // the source has more bytes than allowed
	CodeTooManyPixels     FailureCode = "too_many_pixels"    // the source or the output has more pixels than allowed
	CodeUnsupportedFormat FailureCode = "unsupported_format" // the bytes are not an image in a supported format
	CodeCorruptImage      FailureCode = "corrupt_image"      // the image is damaged
	CodeExpired           FailureCode = "expired"            // the deadline has passed
	CodeProviderError     FailureCode = "provider_error"     // a provider other than HTTP failed
	CodePoison            FailureCode = "poison"             // the job crashed or hung workers
	CodeInternal          FailureCode = "internal"           // a defect of Halcyon, or a problem of the machine
)

// Error returns the code.
func (c FailureCode) Error() string { return string(c) }

// ProblemKind is the kind of problem for which a gateway refused a request: the last part of the type of a problem
// (RFC 9457). It is an error, so that a problem can be tested with errors.Is:
//
//	if errors.Is(err, halcyon.KindUnauthorized) { … }
type ProblemKind string

// The kinds of problems.
const (
	KindBadRequest           ProblemKind = "bad-request"
	KindInvalidJob           ProblemKind = "invalid-job"
	KindUnauthorized         ProblemKind = "unauthorized"
	KindForbidden            ProblemKind = "forbidden"
	KindNotFound             ProblemKind = "not-found"
	KindMethodNotAllowed     ProblemKind = "method-not-allowed"
	KindNotAcceptable        ProblemKind = "not-acceptable"
	KindConflict             ProblemKind = "conflict"
	KindGone                 ProblemKind = "gone"
	KindPreconditionFailed   ProblemKind = "precondition-failed"
	KindTooLarge             ProblemKind = "too-large"
	KindUnsupportedMediaType ProblemKind = "unsupported-media-type"
	KindRangeNotSatisfiable  ProblemKind = "range-not-satisfiable"
	KindMisdirected          ProblemKind = "misdirected"
	KindUnprocessableImage   ProblemKind = "unprocessable-image"
	KindTooManyRequests      ProblemKind = "too-many-requests"
	KindBadOrigin            ProblemKind = "bad-origin"
	KindUnavailable          ProblemKind = "unavailable"
	KindTimeout              ProblemKind = "timeout"
	KindBlank                ProblemKind = "about:blank" // the response does not say
)

// Error returns the kind.
func (k ProblemKind) Error() string { return string(k) }

var (
	// ErrTooLarge reports a response or an event beyond the limits of [Config].
	ErrTooLarge = errors.New("response exceeds the size limit of the client")
	// ErrInvalidResponse reports a response that this version does not understand.
	ErrInvalidResponse = errors.New("invalid response")
	// ErrNotDelivered reports that an image was uploaded to a URL that only the submitter of the job knows.
	ErrNotDelivered = errors.New("image is not delivered to the client")
	// ErrJobCancelled reports that a job was cancelled before it ended.
	ErrJobCancelled = errors.New("job was cancelled")
	// ErrJobSuperseded reports that a job was superseded by one of a higher generation for the same slot.
	ErrJobSuperseded = errors.New("job was superseded")
)

// ProblemError reports that a gateway refused a request. errors.Is matches its Kind and its Code.
type ProblemError struct {
	Kind       ProblemKind   // the kind of problem
	Status     int           // the HTTP status
	Title      string        // a summary, the same for all problems of this kind
	Detail     string        // a description of this problem for people
	Code       FailureCode   // the failure code of an invalid or failed job, or ""
	RetryAfter time.Duration // the time after which a retry makes sense, or 0
}

// Error describes the problem.
func (p *ProblemError) Error() string {
	return fmt.Sprintf("%s (%d): %s", p.Title, p.Status, p.Detail)
}

// Is reports whether target is the kind or the failure code of the problem.
func (p *ProblemError) Is(target error) bool {
	return target == p.Kind || p.Code != "" && target == p.Code
}

// Temporary reports whether the same request may succeed later.
func (p *ProblemError) Temporary() bool {
	switch p.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return true
	case http.StatusBadGateway:
		// A proxy found no gateway. A rendering whose origin failed is final.
		return p.Kind != KindBadOrigin
	}
	return false
}

// JobFailedError reports that a job failed. errors.Is matches its Code.
type JobFailedError struct {
	ID string // the id of the job
	Failed
}

// Error describes the failure.
func (e *JobFailedError) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// Is reports whether target is the code of the failure.
func (e *JobFailedError) Is(target error) bool { return target == e.Code }

// Temporary reports whether the same job may succeed later.
func (e *JobFailedError) Temporary() bool { return e.Retryable }

// JobTimeoutError reports that a job did not end within [Config.JobTimeout]. It matches context.DeadlineExceeded.
type JobTimeoutError struct {
	ID string // the id of the job
}

// Error describes the time-out.
func (e *JobTimeoutError) Error() string { return fmt.Sprintf("job %s did not end in time", e.ID) }

// Is reports whether target is context.DeadlineExceeded.
func (e *JobTimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout returns true.
func (e *JobTimeoutError) Timeout() bool { return true }

// Temporary returns true.
func (e *JobTimeoutError) Temporary() bool { return true }

// ConnectionError reports that a gateway could not be reached, or that the connection to it broke.
type ConnectionError struct {
	Err error // the last error of the connection
}

// Error describes the error of the connection.
func (e *ConnectionError) Error() string {
	return fmt.Sprintf("connection to the gateway failed: %v", e.Err)
}

// Unwrap returns the error of the connection.
func (e *ConnectionError) Unwrap() error { return e.Err }

// Temporary returns true.
func (e *ConnectionError) Temporary() bool { return true }

// IsTemporary reports whether the same request or job may succeed later.
func IsTemporary(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary()
}

// newProblem reads the body of an error response, whatever it is: that of a proxy has the status alone.
func newProblem(status int, header http.Header, body []byte) *ProblemError {
	var said struct {
		Type, Title, Detail string
		Status              int
		Code                FailureCode
	}
	_ = json.Unmarshal(body, &said)
	problem := &ProblemError{
		Kind: KindBlank, Status: status, Title: said.Title, Detail: said.Detail, Code: said.Code,
		RetryAfter: retryAfter(header.Get("Retry-After"), time.Now()),
	}
	if status == 0 {
		problem.Status = said.Status
	}
	if kind := said.Type[strings.LastIndex(said.Type, "/")+1:]; kind != "" {
		problem.Kind = ProblemKind(kind)
	}
	if problem.Title == "" {
		problem.Title = "HTTP status"
	}
	if problem.Detail == "" {
		problem.Detail = "the response has no details"
	}
	return problem
}

// retryAfter parses the header Retry-After: seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 && seconds <= 86_400 {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil && date.After(now) {
		return date.Sub(now)
	}
	return 0
}

func invalidResponse(body []byte, err error) error {
	if len(body) > 200 {
		body = body[:200]
	}
	return fmt.Errorf("%w: %v: %q", ErrInvalidResponse, err, body)
}
