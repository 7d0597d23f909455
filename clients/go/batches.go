package halcyon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// BatchState is the state of a batch.
type BatchState string

// The states of a batch.
const (
	BatchOpen       BatchState = "open"       // jobs may be added
	BatchListing    BatchState = "listing"    // a worker lists the jobs and submits them
	BatchRunning    BatchState = "running"    // all jobs were submitted, and some have not ended
	BatchCancelling BatchState = "cancelling" // it was cancelled, and some jobs have not ended
	BatchCompleted  BatchState = "completed"  // all jobs have ended
)

// Batch is the state of a batch.
type Batch struct {
	ID          string     `json:"id"`
	State       BatchState `json:"state"`
	Tenant      string     `json:"tenant"`
	CreatedAt   time.Time  `json:"createdAt"`
	CancelledAt *time.Time `json:"cancelledAt"`
	CompletedAt *time.Time `json:"completedAt"`
	Prefix      string     `json:"prefix"`    // of the objects of a bucket
	Preset      string     `json:"preset"`    // the preset whose results are made again
	Submitted   int        `json:"submitted"` // the number of jobs so far, in the state BatchListing
	Total       *int       `json:"total"`     // the number of jobs; nil while jobs may be added
	Ended       int        `json:"ended"`     // the number of jobs that have ended
	Counts      struct {
		Ready      int `json:"ready"`
		Failed     int `json:"failed"`
		Cancelled  int `json:"cancelled"`
		Superseded int `json:"superseded"`
	} `json:"counts"` // the number of jobs that have ended, by outcome
	Error *struct {
		Code    FailureCode `json:"code"`
		Message string      `json:"message"`
	} `json:"error"` // the reason why the list of the jobs is incomplete, or nil
}

// BatchOptions are the options of a new batch.
type BatchOptions struct {
	ID       string   // default: a random one
	First    int      // the index of the first job: the number of jobs that the batch has already
	Open     bool     // jobs follow in other requests, and then CloseBatch
	Tenant   string   // of the batch, and of jobs that have none
	Priority Priority // of jobs that have none
	Deadline Time     // of jobs that have none
	Webhook  string   // to which the completion of the batch is delivered
}

func (o BatchOptions) query() parameters {
	var query parameters
	query.add("id", o.ID)
	query.addNonempty("tenant", o.Tenant)
	query.addNonempty("priority", string(o.Priority))
	query.addNonempty("deadline", string(o.Deadline))
	query.addNonempty("webhook", o.Webhook)
	return query
}

// BatchSubmission has the jobs of a batch that a gateway has accepted.
type BatchSubmission struct {
	ID       string         // the id of the batch
	Accepted int            // the number of jobs that were written to the brokers; 0 if a worker lists the jobs
	Rejected int            // the number of invalid jobs, which are not part of the batch
	Missing  int            // the number of failed jobs whose messages no longer exist, of a retry
	Problems []BatchProblem // the problems of the first 100 invalid jobs
}

// BatchProblem is the problem of an invalid job.
type BatchProblem struct {
	Line    int // the position of the job or source in the request, from 1
	Problem *ProblemError
}

// UnmarshalJSON decodes the problem.
func (p *BatchProblem) UnmarshalJSON(text []byte) error {
	var said struct {
		Line    int
		Problem json.RawMessage
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return err
	}
	p.Line, p.Problem = said.Line, newProblem(0, nil, said.Problem)
	return nil
}

// BatchFailure is a failed job of a batch.
type BatchFailure struct {
	Job     string      `json:"job"`   // the id of the job
	Index   *int        `json:"index"` // in the batch; nil if it has none
	Code    FailureCode `json:"code"`
	Message string      `json:"message"`
	Record  string      `json:"record"` // of the job, TOPIC-PARTITION-OFFSET; "" if it is unknown
}

// CreateBatch submits jobs as a batch, whose end is reported by one event. The jobs are sent in one request, which the
// gateway limits (gateway.maximumBatchJobs); more can be added with BatchOptions.Open. The key needs the scope "submit".
func (c *Client) CreateBatch(ctx context.Context, jobs []Job, options BatchOptions) (*BatchSubmission, error) {
	body, err := lines(jobs)
	if err != nil {
		return nil, err
	}
	return c.createBatch(ctx, body, "application/x-ndjson", options)
}

// CreateBatchFromTemplate submits a job with the fields of the template for each source.
func (c *Client) CreateBatchFromTemplate(
	ctx context.Context, template Job, sources []Source, options BatchOptions,
) (*BatchSubmission, error) {
	return c.createBatchOf(ctx, map[string]any{"template": template, "sources": sources}, options)
}

// CreateBatchFromPrefix lets a worker submit a job with the fields of the template for each object of a bucket whose URL
// begins with the prefix, such as "s3://pictures/2026/".
func (c *Client) CreateBatchFromPrefix(
	ctx context.Context, template Job, prefix string, options BatchOptions,
) (*BatchSubmission, error) {
	return c.createBatchOf(ctx, map[string]any{"template": template, "prefix": prefix}, options)
}

func (c *Client) createBatchOf(ctx context.Context, jobs any, options BatchOptions) (*BatchSubmission, error) {
	body, err := json.Marshal(jobs)
	if err != nil {
		return nil, fmt.Errorf("halcyon: %w", err)
	}
	return c.createBatch(ctx, body, "application/json", options)
}

func (c *Client) createBatch(
	ctx context.Context, body []byte, contentType string, options BatchOptions,
) (*BatchSubmission, error) {
	options.ID = idOrNew(options.ID)
	query := options.query()
	if options.First > 0 {
		query.add("first", strconv.Itoa(options.First))
	}
	if options.Open {
		query.add("close", "false")
	}
	return c.submitBatch(ctx, options.ID, &request{
		method: "POST", target: target(query, "batches"), contentType: contentType, body: body,
	})
}

// submitBatch sends a request that creates a batch. If an earlier attempt has closed the batch, and only its response was
// lost, the repeated request is a conflict.
func (c *Client) submitBatch(ctx context.Context, id string, r *request) (*BatchSubmission, error) {
	submission, err := call[BatchSubmission](ctx, c, r)
	if r.repeated && errors.Is(err, KindConflict) {
		if batch, lookup := c.Batch(ctx, id); lookup == nil && batch.Total != nil {
			return &BatchSubmission{ID: id, Accepted: *batch.Total}, nil
		}
	}
	return submission, err
}

// CloseBatch closes an open batch, which has this number of accepted jobs.
func (c *Client) CloseBatch(ctx context.Context, id string, total int) (*Batch, error) {
	return call[Batch](ctx, c, &request{
		method: "POST", target: target(nil, "batches", id, "close"), contentType: "application/json",
		body: []byte(fmt.Sprintf(`{"total": %d}`, total)),
	})
}

// Batch returns the state of a batch. The key needs the scope "read".
func (c *Client) Batch(ctx context.Context, id string) (*Batch, error) {
	return call[Batch](ctx, c, &request{method: "GET", target: target(nil, "batches", id)})
}

// Batches returns the newest batches, at most limit (1 to 1000). The key needs the scope "read".
func (c *Client) Batches(ctx context.Context, limit int) ([]Batch, error) {
	query := parameters{{"limit", strconv.Itoa(limit)}}
	page, err := call[struct{ Batches []Batch }](ctx, c, &request{method: "GET", target: target(query, "batches")})
	if err != nil {
		return nil, err
	}
	return page.Batches, nil
}

// WaitBatch waits until all jobs of a batch have ended, and returns its state. It does not return before the context is
// done if the batch is never closed.
func (c *Client) WaitBatch(ctx context.Context, id string) (*Batch, error) {
	pause := 100 * time.Millisecond
	for {
		batch, err := c.Batch(ctx, id)
		if err != nil || batch.State == BatchCompleted {
			return batch, err
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, contextError(err)
		}
		if pause *= 2; pause > 2*time.Second {
			pause = 2 * time.Second
		}
	}
}

// BatchFailures returns the failed jobs of a batch, in the order of their ends: at most limit (1 to 1000) of them after
// the first start. The key needs the scope "read".
func (c *Client) BatchFailures(ctx context.Context, id string, start, limit int) ([]BatchFailure, error) {
	query := parameters{{"start", strconv.Itoa(start)}, {"limit", strconv.Itoa(limit)}}
	page, err := call[struct{ Failures []BatchFailure }](ctx, c, &request{
		method: "GET", target: target(query, "batches", id, "failures"),
	})
	if err != nil {
		return nil, err
	}
	return page.Failures, nil
}

// CancelBatch cancels all jobs of a batch that have not ended. A completed batch is a problem of [KindConflict]. The key
// needs the scope "submit".
func (c *Client) CancelBatch(ctx context.Context, id string) (*Batch, error) {
	return call[Batch](ctx, c, &request{method: "DELETE", target: target(nil, "batches", id)})
}

// RetryBatch submits the failed jobs of a completed batch as a new batch. It is a problem of [KindConflict] if the batch
// is not completed, or no job failed. The key needs the scope "submit".
func (c *Client) RetryBatch(ctx context.Context, id string, options BatchOptions) (*BatchSubmission, error) {
	options.ID = idOrNew(options.ID)
	return c.submitBatch(ctx, options.ID, &request{
		method: "POST", target: target(options.query(), "batches", id, "retry"), contentType: "application/json",
		body: []byte("{}"),
	})
}

func idOrNew(id string) string {
	if id == "" {
		return newID()
	}
	return id
}
