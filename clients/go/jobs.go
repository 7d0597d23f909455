package halcyon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// AcceptedJob is a job that a gateway has accepted and written to the brokers.
type AcceptedJob struct {
	ID            string   `json:"id"`
	Lane          Priority `json:"lane"`
	Images        []string `json:"images"`        // the paths at which the images will be available, by variant
	UnknownFields []string `json:"unknownFields"` // fields that the gateway does not know
}

// Keys returns the keys of the images that the job makes, in the order of its variants.
func (a *AcceptedJob) Keys() []string {
	keys := make([]string, len(a.Images))
	for index, path := range a.Images {
		keys[index] = path[strings.LastIndex(path, "/")+1:]
		if key, err := url.PathUnescape(keys[index]); err == nil {
			keys[index] = key
		}
	}
	return keys
}

// Submission is the outcome for one of several submitted jobs: either is nil.
type Submission struct {
	Accepted *AcceptedJob
	Problem  *ProblemError
}

// State is the state of a job.
type State string

// The states of a job.
const (
	StateAccepted   State = "accepted"
	StateStarted    State = "started"
	StateReady      State = "ready"
	StateFailed     State = "failed"
	StateCancelled  State = "cancelled"
	StateSuperseded State = "superseded"
)

// Ended reports whether a job in this state has ended.
func (s State) Ended() bool {
	return s == StateReady || s == StateFailed || s == StateCancelled || s == StateSuperseded
}

// JobState is the state of a job, and its last event, or nil before the first one.
type JobState struct {
	ID    string `json:"id"`
	State State  `json:"state"`
	Event *Event `json:"event"`
}

// Submit submits a job. The brokers have stored it when this returns, and an event will report its end. The key needs the
// scope "submit".
func (c *Client) Submit(ctx context.Context, job Job) (*AcceptedJob, error) {
	return c.submit(ctx, job, false)
}

func (c *Client) submit(ctx context.Context, job Job, completes bool) (*AcceptedJob, error) {
	body, err := json.Marshal(withID(job))
	if err != nil {
		return nil, fmt.Errorf("halcyon: %w", err)
	}
	return call[AcceptedJob](ctx, c, &request{
		method: "POST", target: target(nil, "jobs"), contentType: "application/json", body: body, completes: completes,
	})
}

// SubmitJobs submits many jobs in one request. It returns the outcome for each job, in the same order.
func (c *Client) SubmitJobs(ctx context.Context, jobs []Job) ([]Submission, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	named := make([]Job, len(jobs))
	for index, job := range jobs {
		named[index] = withID(job)
	}
	body, err := lines(named)
	if err != nil {
		return nil, err
	}
	response, err := c.send(ctx, &request{
		method: "POST", target: target(nil, "jobs"), contentType: "application/x-ndjson", body: body,
	})
	if err != nil {
		return nil, err
	}
	submissions := make([]Submission, 0, len(jobs))
	decoder := json.NewDecoder(bytes.NewReader(response.body))
	for decoder.More() {
		var line struct {
			AcceptedJob
			Problem json.RawMessage
		}
		if err := decoder.Decode(&line); err != nil {
			return nil, invalidResponse(response.body, err)
		}
		if line.Problem != nil {
			submissions = append(submissions, Submission{Problem: newProblem(0, nil, line.Problem)})
		} else {
			submissions = append(submissions, Submission{Accepted: &line.AcceptedJob})
		}
	}
	if len(submissions) != len(jobs) {
		return nil, fmt.Errorf("%w: %d results for %d jobs", ErrInvalidResponse, len(submissions), len(jobs))
	}
	return submissions, nil
}

// JobState returns the state of a job. With a wait above 0, it is returned when the job has ended, or when that time or
// gateway.maximumWait has passed. The key needs the scope "read".
func (c *Client) JobState(ctx context.Context, id string, wait time.Duration) (*JobState, error) {
	var query parameters
	if wait > c.config.LongPollInterval {
		wait = c.config.LongPollInterval
	}
	if wait > 0 {
		query.add("wait", strconv.FormatFloat(wait.Seconds(), 'f', 3, 64))
	}
	return call[JobState](ctx, c, &request{method: "GET", target: target(query, "jobs", id), wait: wait})
}

// CancelJob cancels a job. Its event tells whether that was in time. A job that has ended is a problem of [KindConflict].
// The key needs the scope "submit".
func (c *Client) CancelJob(ctx context.Context, id string) error {
	_, err := c.send(ctx, &request{method: "DELETE", target: target(nil, "jobs", id)})
	return err
}

// Wait waits for the end of a job and returns its images. If there are none, the error is a [*JobFailedError], or
// [ErrJobCancelled] or [ErrJobSuperseded]; after [Config.JobTimeout] it is a [*JobTimeoutError]. The job continues when
// the wait ends early. The job must have been submitted over HTTP: for one that was sent to Kafka, use [Client.Subscribe].
func (c *Client) Wait(ctx context.Context, id string) (*Ready, error) {
	deadline := time.Now().Add(c.config.JobTimeout)
	for {
		start := time.Now()
		left := deadline.Sub(start)
		if left <= 0 {
			return nil, &JobTimeoutError{id}
		}
		state, err := c.JobState(ctx, id, left)
		if err != nil {
			return nil, err
		}
		if state.State.Ended() {
			return state.result()
		}
		// Limits the rate at a gateway that responds at once.
		if pause := 250*time.Millisecond - time.Since(start); pause > 0 {
			if err := sleep(ctx, pause); err != nil {
				return nil, contextError(err)
			}
		}
	}
}

// result returns the images of a job that has ended.
func (s *JobState) result() (*Ready, error) {
	switch {
	case s.State == StateCancelled:
		return nil, fmt.Errorf("%w: %s", ErrJobCancelled, s.ID)
	case s.State == StateSuperseded:
		return nil, fmt.Errorf("%w: %s", ErrJobSuperseded, s.ID)
	case s.Event == nil:
		return nil, fmt.Errorf("%w: job %s has ended without an event", ErrInvalidResponse, s.ID)
	}
	return s.Event.Result()
}

// Result returns the images of a job from its last event, or its failure as an error, as described for [Client.Wait].
func (e *Event) Result() (*Ready, error) {
	id := ""
	if e.Job != nil {
		id = e.Job.ID
	}
	switch {
	case e.Ready != nil:
		return e.Ready, nil
	case e.Failed != nil:
		return nil, &JobFailedError{id, *e.Failed}
	case e.Type == EventCancelled:
		return nil, fmt.Errorf("%w: %s", ErrJobCancelled, id)
	case e.Type == EventSuperseded:
		return nil, fmt.Errorf("%w: %s", ErrJobSuperseded, id)
	}
	return nil, fmt.Errorf("%w: %s is not the end of a job", ErrInvalidResponse, e.Type)
}

// SubmitAndWait submits a job, waits for its end and returns its images, with the errors of [Client.Wait]. The job is
// cancelled if its end is no longer awaited: when the context is done, or after [Config.JobTimeout]. The key needs the
// scopes "submit" and "read".
func (c *Client) SubmitAndWait(ctx context.Context, job Job) (*Ready, error) {
	job = withID(job)
	submitted := make(chan error, 1)
	go func() {
		_, err := c.submit(ctx, job, true)
		submitted <- err
	}()
	select {
	case err := <-submitted:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		// Only a job that the gateway has written can be cancelled.
		c.giveUp(ctx, job.ID, submitted)
		return nil, contextError(ctx.Err())
	}
	ready, err := c.Wait(ctx, job.ID)
	var timeout *JobTimeoutError
	if err != nil && (ctx.Err() != nil || errors.As(err, &timeout)) {
		submitted <- nil
		c.giveUp(ctx, job.ID, submitted)
	}
	return ready, err
}

// giveUp cancels a job when its submission has ended, and waits for that for at most two seconds. If it fails, the job is
// only done in vain.
func (c *Client) giveUp(ctx context.Context, id string, submitted <-chan error) {
	ctx, cancel := context.WithTimeout(detached{ctx}, 2*time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		if err := <-submitted; err == nil {
			_ = c.CancelJob(ctx, id)
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// withID returns the job with an id, so that it can be sent again.
func withID(job Job) Job {
	if job.ID == "" {
		job.ID = newID()
	}
	return job
}

// lines encodes jobs as NDJSON.
func lines(jobs []Job) ([]byte, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	for _, job := range jobs {
		if err := encoder.Encode(job); err != nil {
			return nil, fmt.Errorf("halcyon: %w", err)
		}
	}
	return body.Bytes(), nil
}
