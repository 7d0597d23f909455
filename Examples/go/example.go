// Loads an image and writes it to a file: go run example.go GATEWAY SOURCE FILE.
// Set HALCYON_KEY if the gateway requires a key.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"example.org/halcyon"
)

func run(ctx context.Context, gateway, source, file string) error {
	client, err := halcyon.New(gateway, halcyon.Config{Key: os.Getenv("HALCYON_KEY")})
	if err != nil {
		return err
	}
	image, err := client.Image(ctx, halcyon.Job{
		Source: halcyon.Source(source), Output: halcyon.Output{Width: 400, Height: 300},
	})
	var failed *halcyon.JobFailedError
	if errors.As(err, &failed) {
		fmt.Println("failed")
		return fmt.Errorf("failed: %w", err)
	}
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return os.WriteFile(file, image.Data, 0o644)
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: example GATEWAY SOURCE FILE")
		os.Exit(2)
	}
	// Ctrl-C cancels the job.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
