package halcyon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Message is an item of an event stream.
type Message struct {
	Event  *Event // nil for a gap
	Gap    string // says why events before the next one are missing, because the broker has deleted them; otherwise ""
	Cursor string // the position after the message, at which another stream can resume
}

// Subscription is an event stream that resumes after the last message when its connection is lost, without missing or
// repeating events. It is used by one goroutine.
//
//	events, err := client.Subscribe(ctx, halcyon.EventFilter{Types: []halcyon.EventType{halcyon.EventReady}}, "")
//	…
//	defer events.Close()
//	for events.Next() {
//		fmt.Println(events.Message().Event.Job.ID)
//	}
//	return events.Err()
type Subscription struct {
	client  *Client
	ctx     context.Context
	cancel  context.CancelFunc
	filter  EventFilter
	parser  eventParser
	body    *stream
	backoff backoff
	message Message
	cursor  string
	err     error
}

// Subscribe follows the events of the cluster from now on, or after the Cursor of a message. The stream has begun when
// this returns: no later event is missed. It ends with the context. The key needs the scope "read".
func (c *Client) Subscribe(ctx context.Context, filter EventFilter, cursor string) (*Subscription, error) {
	inner, cancel := context.WithCancel(ctx)
	s := &Subscription{
		client: c, ctx: inner, cancel: cancel, filter: filter,
		backoff: backoff{base: 2 * time.Second, maximum: c.config.MaximumBackoff},
		parser:  eventParser{cursor: cursor, limit: c.config.MaximumEventBytes},
	}
	if s.cursor = cursor; cursor != "" {
		return s, nil
	}
	deadline := time.Now().Add(c.config.RetryTimeout)
	for s.parser.cursor == "" {
		if err := s.receive(); err != nil {
			pause, err := s.afterError(err)
			if err == nil && !time.Now().Add(pause).Before(deadline) {
				err = s.err
			}
			if err == nil {
				err = sleep(s.ctx, pause)
			}
			if err != nil {
				s.Close()
				return nil, err
			}
		}
	}
	s.cursor = s.parser.cursor
	return s, nil
}

// Next waits for the next message. It returns false when the stream has ended: with the context, after Close, or with an
// error that a new connection does not mend, such as a wrong key.
func (s *Subscription) Next() bool {
	s.err = nil
	for {
		if err := s.ctx.Err(); err != nil {
			s.err = contextError(err)
			return false
		}
		if len(s.parser.messages) > 0 {
			received := s.parser.messages[0]
			s.parser.messages = s.parser.messages[1:]
			s.message, s.err = received.decode()
			s.cursor = received.id
			return s.err == nil
		}
		if err := s.receive(); err != nil {
			pause, err := s.afterError(err)
			if err == nil {
				err = sleep(s.ctx, pause)
			}
			if err != nil {
				s.err = err
				return false
			}
		} else if len(s.parser.messages) == 0 {
			s.cursor = s.parser.cursor
		}
	}
}

// Message returns the message that Next has found.
func (s *Subscription) Message() Message { return s.message }

// Cursor returns the position of the stream, at which another one can resume. It is at or after that of Message, because
// events that the filter excludes change it too.
func (s *Subscription) Cursor() string { return s.cursor }

// Err returns the error that ended the stream.
func (s *Subscription) Err() error { return s.err }

// Close ends the stream. A waiting Next returns false.
func (s *Subscription) Close() error {
	s.cancel()
	if s.body != nil {
		return s.body.Close()
	}
	return nil
}

// receive reads until the position or the messages have changed, connecting first if necessary.
func (s *Subscription) receive() error {
	if s.body == nil {
		header := http.Header{"Accept": {"text/event-stream"}, "Cache-Control": {"no-store"}}
		if s.parser.cursor != "" {
			header.Set("Last-Event-ID", s.parser.cursor)
		}
		body, err := s.client.open(s.ctx, &request{method: "GET", target: target(s.filter.query(), "events")}, header)
		if err != nil {
			return err
		}
		s.body = body
		if kind := body.header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
			return fmt.Errorf("%w: expected an event stream, got %q", ErrInvalidResponse, kind)
		}
		s.parser.reader = bufio.NewReader(body)
	}
	if err := s.parser.read(); err != nil {
		return s.body.explain(err)
	}
	s.backoff.failures = 0
	if s.parser.retry > 0 {
		s.backoff.base = s.parser.retry
	}
	return nil
}

// afterError returns the pause before the next connection, or an error that it does not mend. An incomplete event is
// dropped, because it will be sent again.
func (s *Subscription) afterError(err error) (time.Duration, error) {
	if s.body != nil {
		s.body.Close()
		s.body = nil
	}
	if !IsTemporary(err) {
		return 0, err
	}
	s.err = err
	return s.backoff.next(retryAfterOf(err)), nil
}

// eventParser is a parser for event streams (HTML Living Standard, 9.2.6).
type eventParser struct {
	reader   *bufio.Reader
	limit    int64
	cursor   string        // the id of the last complete event
	retry    time.Duration // the pause before a reconnection, if the stream has set it
	messages []receivedEvent
}

type receivedEvent struct{ name, data, id string }

// read reads one event, which may consist of an id alone.
func (p *eventParser) read() error {
	event, data, size := receivedEvent{id: p.cursor}, []string{}, int64(0)
	for {
		line, err := p.line(&size)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			p.cursor = event.id
			if event.data = strings.Join(data, "\n"); len(data) > 0 {
				p.messages = append(p.messages, event)
			}
			return nil
		}
		field, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			event.name = value
		case "data":
			data = append(data, value)
		case "id":
			if !strings.Contains(value, "\x00") {
				event.id = value
			}
		case "retry":
			if milliseconds, err := strconv.ParseUint(value, 10, 31); err == nil {
				p.retry = time.Duration(milliseconds) * time.Millisecond
			}
		}
	}
}

// line reads a line without its end.
func (p *eventParser) line(size *int64) ([]byte, error) {
	var line []byte
	for {
		part, err := p.reader.ReadSlice('\n')
		line = append(line, part...)
		if *size += int64(len(part)); *size > p.limit {
			return nil, fmt.Errorf("%w: an event of more than %d bytes", ErrTooLarge, p.limit)
		}
		switch {
		case err == nil:
			return bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'}), nil
		case err == io.EOF:
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (r receivedEvent) decode() (Message, error) {
	if r.name == "gap" {
		gap := struct{ Reason string }{r.data}
		_ = json.Unmarshal([]byte(r.data), &gap) // Otherwise the text itself says why.
		return Message{Gap: gap.Reason, Cursor: r.id}, nil
	}
	event := new(Event)
	if err := json.Unmarshal([]byte(r.data), event); err != nil {
		return Message{}, invalidResponse([]byte(r.data), err)
	}
	return Message{Event: event, Cursor: r.id}, nil
}
