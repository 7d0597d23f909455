package halcyon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Image is an image that a job has made.
type Image struct {
	Data    []byte // the file
	Variant        // its properties
	Ready   *Ready // the event of the job
}

// Image submits a job, waits for its end and loads its first image, with the errors of [Client.Wait]. The job is
// cancelled if its end is no longer awaited. The key needs the scopes "submit" and "read".
func (c *Client) Image(ctx context.Context, job Job) (*Image, error) {
	ready, err := c.ready(ctx, job)
	if err != nil {
		return nil, err
	}
	if len(ready.Variants) == 0 {
		return nil, fmt.Errorf("%w: the job has no image", ErrInvalidResponse)
	}
	return c.load(ctx, ready, 0)
}

// Images is like [Client.Image], but loads all images of a job with variants. It returns them in the order of the
// variants, without those that could not be made.
func (c *Client) Images(ctx context.Context, job Job) ([]*Image, error) {
	ready, err := c.ready(ctx, job)
	if err != nil {
		return nil, err
	}
	images := make([]*Image, len(ready.Variants))
	for index := range images {
		if images[index], err = c.load(ctx, ready, index); err != nil {
			return nil, err
		}
	}
	return images, nil
}

// ready waits for a job whose images can be loaded: stored images need not be in the event too.
func (c *Client) ready(ctx context.Context, job Job) (*Ready, error) {
	if job.Delivery == DeliverInline {
		job.Delivery = DeliverReference
	}
	return c.SubmitAndWait(ctx, job)
}

func (c *Client) load(ctx context.Context, ready *Ready, index int) (*Image, error) {
	variant := ready.Variants[index]
	data, err := c.ImageData(ctx, variant)
	if err != nil {
		return nil, err
	}
	return &Image{Data: data, Variant: variant, Ready: ready}, nil
}

// ImageData returns the file of an output of a ready event, however it was delivered: from the event, by its key from the
// gateway, or else from its public URL or the address of its upload. A file that is neither stored nor small enough for an
// event can be loaded once. The error is [ErrNotDelivered] if only the submitter knows the address. The key needs the
// scope "read".
func (c *Client) ImageData(ctx context.Context, variant Variant) ([]byte, error) {
	if variant.Data != nil {
		return variant.Data, nil
	}
	data, err := c.StoredImage(ctx, variant.Key)
	if !errors.Is(err, KindNotFound) {
		return data, err
	}
	for _, address := range []string{variant.URL, variant.Put} {
		if address == "" {
			continue
		}
		if location, invalid := url.Parse(address); invalid == nil && strings.Trim(location.Path, "/") == "" {
			return nil, fmt.Errorf("%w: it was uploaded to a URL of %s", ErrNotDelivered, address)
		}
		file, failure := repeat(ctx, c.config, func() ([]byte, error) { return c.Download(ctx, address) })
		var problem *ProblemError
		if !errors.As(failure, &problem) {
			return file, failure
		}
		err = failure
	}
	return nil, err
}

// StoredImage returns the file of a stored result. The error is of [KindNotFound] if there is none (any more). The key
// needs the scope "read".
func (c *Client) StoredImage(ctx context.Context, key string) ([]byte, error) {
	read := &request{method: "GET", target: target(nil, "images", key), limit: c.config.MaximumImageBytes}
	return repeat(ctx, c.config, func() ([]byte, error) {
		response, err := c.attempt(ctx, read)
		if err != nil {
			return nil, err
		}
		if response.status == http.StatusFound { // gateway.redirectsToStore
			return c.Download(ctx, response.header.Get("Location"))
		}
		return response.body, nil
	})
}

// Download returns the file at the public URL of a variant, or at any other URL, such as that of an upload. It is loaded
// without the key of the gateway, and a request that fails is not repeated.
func (c *Client) Download(ctx context.Context, address string) ([]byte, error) {
	location, err := url.Parse(address)
	if err != nil || location.Host == "" {
		return nil, fmt.Errorf("%w: %q is not a URL", ErrInvalidResponse, address)
	}
	request, err := http.NewRequest("GET", address, nil)
	if err != nil {
		return nil, fmt.Errorf("halcyon: %w", err)
	}
	stream, err := c.do(ctx, request, 0)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	if stream.status != http.StatusOK {
		return nil, newProblem(stream.status, stream.header, nil)
	}
	data, err := readAll(stream, c.config.MaximumImageBytes)
	if err != nil {
		return nil, stream.explain(err)
	}
	return data, nil
}

// Info returns facts about the source of a job with one request (docs/info.md). No image is rendered. The job may have
// the fields that facts depend on, and those of caching. The key needs the scope "submit".
func (c *Client) Info(ctx context.Context, job Job) (*Info, error) {
	path, err := infoTarget(job)
	if err != nil {
		return nil, err
	}
	response, err := c.send(ctx, &request{
		method: "GET", target: path, limit: c.config.MaximumImageBytes, wait: c.config.LongPollInterval,
	})
	if err != nil {
		return nil, err
	}
	info := new(Info)
	if err := json.Unmarshal(response.body, info); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrInvalidResponse, err)
	}
	return info, nil
}

// Render returns the image of a job with one request. A stored result is returned at once; otherwise the job is done with
// the priority high while the gateway waits. A failure of the job is a [*ProblemError] with its Code. The job may have
// the fields that [Client.RenderURL] allows. The key needs the scope "submit".
func (c *Client) Render(ctx context.Context, job Job) ([]byte, error) {
	path, err := renderTarget(job)
	if err != nil {
		return nil, err
	}
	response, err := c.send(ctx, &request{
		method: "GET", target: path, limit: c.config.MaximumImageBytes, wait: c.config.LongPollInterval,
	})
	if err != nil {
		return nil, err
	}
	return response.body, nil
}
