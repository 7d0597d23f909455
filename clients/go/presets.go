package halcyon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// PresetTemplate is the definition of a preset.
type PresetTemplate struct {
	// Job has the fields of the jobs with the preset. It has no source.
	Job Job `json:"job"`
	// Overridable has the names of fields that a job may set itself although they belong to the preset.
	Overridable []string `json:"overridable,omitempty"`
	// Version is higher than the last one. Default: the next one, if the preset has changed.
	Version int64 `json:"version,omitempty"`
}

// Preset is a preset of a cluster: a named template of jobs.
type Preset struct {
	Name        string          `json:"name"`
	Version     int64           `json:"version"`
	Job         json.RawMessage `json:"job"` // the fields of jobs with the preset
	Overridable []string        `json:"overridable"`
	Origin      string          `json:"origin"` // "settings" or "registered"
}

// PutPreset registers or replaces a preset, and returns it with its version. A preset of the settings is a problem of
// [KindConflict]. The key needs the scope "admin", as for all methods of presets.
func (c *Client) PutPreset(ctx context.Context, name string, template PresetTemplate) (*Preset, error) {
	body, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("halcyon: %w", err)
	}
	return call[Preset](ctx, c, &request{
		method: "PUT", target: target(nil, "presets", name), contentType: "application/json", body: body,
	})
}

// Preset returns a preset. The error is of [KindNotFound] if there is none.
func (c *Client) Preset(ctx context.Context, name string) (*Preset, error) {
	return call[Preset](ctx, c, &request{method: "GET", target: target(nil, "presets", name)})
}

// Presets returns all presets.
func (c *Client) Presets(ctx context.Context) ([]Preset, error) {
	page, err := call[struct{ Presets []Preset }](ctx, c, &request{method: "GET", target: target(nil, "presets")})
	if err != nil {
		return nil, err
	}
	return page.Presets, nil
}

// DeletePreset deletes a preset. The error is of [KindNotFound] if there is none.
func (c *Client) DeletePreset(ctx context.Context, name string) error {
	r := &request{method: "DELETE", target: target(nil, "presets", name)}
	_, err := c.send(ctx, r)
	if r.repeated && errors.Is(err, KindNotFound) {
		return nil // An earlier attempt has deleted it, and its response was lost.
	}
	return err
}

// RerenderOptions are the options of [Client.Rerender].
type RerenderOptions struct {
	ID       string   // of the batch; default: a random one
	Tenant   string   // only the results of this tenant
	Priority Priority // the lane of the jobs; default: low
	Reload   bool     // fetches the sources again, and renders results that exist
	Webhook  string   // to which the completion of the batch is delivered
}

// Rerender submits the jobs by which results were made with a preset again, with its current version, as a batch.
func (c *Client) Rerender(ctx context.Context, name string, options RerenderOptions) (*BatchSubmission, error) {
	options.ID = idOrNew(options.ID)
	var query parameters
	query.add("id", options.ID)
	query.addNonempty("tenant", options.Tenant)
	query.addNonempty("priority", string(options.Priority))
	query.addNonempty("webhook", options.Webhook)
	if options.Reload {
		query.add("reload", "true")
	}
	return c.submitBatch(ctx, options.ID, &request{
		method: "POST", target: target(query, "presets", name, "rerender"), contentType: "application/json",
		body: []byte("{}"),
	})
}
