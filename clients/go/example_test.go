package halcyon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"example.org/halcyon"
)

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := halcyon.New("http://127.0.0.1:8080", halcyon.Config{Key: os.Getenv("HALCYON_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	image, err := client.Image(ctx, halcyon.Job{
		Source: "https://example.org/cat.jpg", Output: halcyon.Output{Width: 400, Height: 300},
	})
	switch {
	case errors.Is(err, halcyon.CodeNotFound):
		fmt.Println("there is no such image")
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println(image.Width, image.Height, len(image.Data))
	}
}

func ExampleClient_Subscribe() {
	client, err := halcyon.New("http://127.0.0.1:8080", halcyon.Config{})
	if err != nil {
		log.Fatal(err)
	}
	events, err := client.Subscribe(context.Background(), halcyon.EventFilter{
		Types: []halcyon.EventType{halcyon.EventReady, halcyon.EventFailed},
	}, "")
	if err != nil {
		log.Fatal(err)
	}
	defer events.Close()
	for events.Next() {
		message := events.Message()
		if message.Event != nil {
			fmt.Println(message.Event.Type, message.Event.Job.ID)
		}
	}
	log.Fatal(events.Err())
}

func ExampleJob_kafka() {
	job := halcyon.Job{
		ID: "article-17-hero", Source: "https://example.org/cat.jpg",
		Output: halcyon.Output{Width: 400, Processors: []halcyon.Processor{halcyon.RoundCorner(halcyon.Points(8), "")}},
	}
	message, _ := json.Marshal(job)
	fmt.Println(string(message))
	// Output: {"width":400,"processors":[{"roundCorner":{"radius":8}}],"source":"https://example.org/cat.jpg","id":"article-17-hero"}
}

func ExampleResultKeys() {
	keys, _ := halcyon.ResultKeys(halcyon.Job{
		Source: "https://example.org/cat.jpg", Output: halcyon.Output{Width: 400, Height: 300},
	})
	fmt.Println(keys[0])
	// Output: halcyon:{8a7770243f9d04f66ec3ca6401b0f34e}:fdbc61c3f7e63ad74f25e95b66f219e9
}

func ExampleURLSigner() {
	signer := halcyon.URLSigner{KeyID: "1", Secret: "0123456789abcdef0123456789abcdef"}
	signed, _ := signer.Sign(
		"https://images.example.org/v1/render?source=https%3A%2F%2Fexample.org%2Fcat.jpg&width=400",
		time.Unix(1790000000, 0))
	fmt.Println(signed[len(signed)-64:])
	// Output: fa2e1359ceb8e94b2c9b81f45da9ee7ad5487a0497cad0e391f2e397db998c14
}
