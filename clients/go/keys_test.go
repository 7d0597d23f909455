package halcyon

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

func TestResultKeysOfThePublishedVectors(t *testing.T) {
	text, err := os.ReadFile("../../schemas/key-vectors.json")
	if err != nil {
		t.Skip("the vectors are in the repository of Halcyon:", err)
	}
	var file struct {
		Vectors []struct {
			Name         string
			Job          json.RawMessage
			SourceText   string
			VariantTexts []string
			Keys         []string
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) < 209 {
		t.Errorf("%d vectors", len(file.Vectors))
	}
	for _, vector := range file.Vectors {
		texts, err := CanonicalTextsOf(vector.Job)
		if err != nil || texts.Source != vector.SourceText || !reflect.DeepEqual(texts.Variants, vector.VariantTexts) {
			t.Errorf("%s: %v %q, not %q %q", vector.Name, err, texts, vector.SourceText, vector.VariantTexts)
		}
		if keys, _ := ResultKeys(vector.Job); !reflect.DeepEqual(keys, vector.Keys) {
			t.Errorf("%s: %v, not %v", vector.Name, keys, vector.Keys)
		}
	}
}

func TestKeysOfTypedJobs(t *testing.T) {
	job := Job{Source: "https://example.org/cat.jpg", Output: Output{Width: 400, Height: 300}}
	keys, err := ResultKeys(job)
	want := "halcyon:{8a7770243f9d04f66ec3ca6401b0f34e}:fdbc61c3f7e63ad74f25e95b66f219e9"
	if err != nil || len(keys) != 1 || keys[0] != want {
		t.Errorf("%v %v", keys, err)
	}
	// A variant that resets a field has the key of a job without it.
	job = Job{Source: job.Source, Output: Output{Lossless: true}, Variants: []Output{
		{Width: 400, Height: 300, Reset: []string{"lossless"}},
	}}
	if keys, err := ResultKeys(job); err != nil || keys[0] != want {
		t.Errorf("%v %v", keys, err)
	}
}

func TestKeysOfInvalidJobsAreErrors(t *testing.T) {
	for _, job := range []string{
		`[]`, `{}`, `{"source": 1}`, `{"source": "https://example.org/", "width": "wide"}`, `{"source": "data:;base64,???"}`,
		`{"source": "https://example.org/", "background": "reddish"}`,
		`{"source": "https://example.org/", "background": "rgb(1,2)"}`,
		`{"source": "https://example.org/", "processors": [{}]}`, `{"source": "https://example.org/", "preset": "card"}`,
	} {
		if keys, err := ResultKeys(json.RawMessage(job)); err == nil {
			t.Errorf("%s: %v", job, keys)
		}
	}
}

func TestCompactJSON(t *testing.T) {
	var value any
	decoder := json.NewDecoder(bytesReader(`{"b": [1.0, 0.5, 1e2, -0.00001], "a": "<\u2028\\u2028\n\u0001é>"}`))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	want := "{\"a\":\"<\u2028\\\\u2028\\n\\u0001é>\",\"b\":[1,0.5,100,-1e-05]}"
	if text := compactJSON(value); text != want {
		t.Errorf("%s, not %s", text, want)
	}
}
