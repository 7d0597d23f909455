// Requests an image over HTTP and writes it to a file: go run example.go GATEWAY SOURCE FILE.
// Set HALCYON_KEY if the gateway requires a key.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

// variant is an output of a job. Data is the encoded image if the event contains it, which is the case for results that are not stored.
type variant struct {
	Key  string
	Data []byte
}

// state is the response of GET /v1/jobs/{id}.
type state struct {
	State string
	Event struct {
		Data struct {
			Code, Message string
			Variants      []variant
		}
	}
}

// The timeout must exceed the 20 s for which a request waits for the end of a job.
var client = http.Client{Timeout: 60 * time.Second}

// ask sends a request and returns the body of the response, or an error with the message of the gateway.
func ask(method, address string, body []byte) ([]byte, error) {
	request, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if key := os.Getenv("HALCYON_KEY"); key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	return answer, err
}

// finished submits a job and waits for its terminal event.
func finished(gateway string, job map[string]any) (state, error) {
	var ended state
	body, err := json.Marshal(job)
	if err != nil {
		return ended, err
	}
	answer, err := ask("POST", gateway+"/v1/jobs", body)
	if err != nil {
		return ended, err
	}
	var accepted struct{ Status string }
	if err := json.Unmarshal(answer, &accepted); err != nil {
		return ended, err
	}
	for {
		answer, err := ask("GET", gateway+accepted.Status+"?wait=20", nil)
		if err != nil {
			return ended, err
		}
		ended = state{}
		if err := json.Unmarshal(answer, &ended); err != nil {
			return ended, err
		}
		if ended.State != "accepted" && ended.State != "started" {
			return ended, nil
		}
	}
}

func run(gateway, source, file string) error {
	job, err := finished(gateway, map[string]any{"source": source, "width": 400, "height": 300})
	if err != nil {
		return err
	}
	fmt.Println(job.State)
	if job.State != "ready" {
		return fmt.Errorf("%s: %s: %s", job.State, job.Event.Data.Code, job.Event.Data.Message)
	}
	output := job.Event.Data.Variants[0]
	image := output.Data
	if image == nil {
		// A result that is neither stored nor small enough for an event can be read once with its key.
		if image, err = ask("GET", gateway+"/v1/images/"+url.PathEscape(output.Key), nil); err != nil {
			return err
		}
	}
	return os.WriteFile(file, image, 0o644)
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: example GATEWAY SOURCE FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
