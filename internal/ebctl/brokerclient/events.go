package brokerclient

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

const (
	// maxEventLine is the maximum length of a line in a stream. An event is much shorter.
	maxEventLine = 64 << 10
	// silence is the maximum time between two lines of a stream. The broker sends heartbeats every 15 seconds.
	silence = 45 * time.Second
)

// errSilent reports that a stream contained neither events nor heartbeats for too long.
var errSilent = fmt.Errorf("neither an event nor a heartbeat within %s", silence)

// FollowEvents calls handle for each event after the given position, including new ones, until the context ends or the stream
// breaks. If after is negative, it calls handle only for new events. It returns the position after which the caller can resume.
// The error for a broken stream is temporary.
func (c *Client) FollowEvents(ctx context.Context, params operatorapi.ListEventsParams, after int64, handle func(operatorapi.CloudEvent) error) (int64, error) {
	query := url.Values{}
	set(query, "types", params.Types)
	set(query, "instance_id", params.InstanceID)
	set(query, "account", params.Account)

	stream, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	sent, err := c.build(stream, request{method: http.MethodGet, path: "/events", query: query})
	if err != nil {
		return after, err
	}

	sent.Header.Set("Accept", "text/event-stream")

	if after >= 0 {
		sent.Header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
	}

	streaming := *c.http
	streaming.Timeout = 0 // the timer limits the time between two lines

	timer := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer timer.Stop()

	// If the timer has canceled the stream, return errSilent, because the caller's context has not ended.
	unreachable := func(err error) error {
		if cause := context.Cause(stream); errors.Is(cause, errSilent) {
			err = cause
		}

		return c.unreachable(ctx, err)
	}

	response, err := streaming.Do(sent)
	if err != nil {
		return after, unreachable(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read

	if response.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
		if err != nil {
			return after, unreachable(err)
		}

		return after, c.answerError(response, body)
	}

	after, err = readEvents(response.Body, after, func() { timer.Reset(silence) }, handle)
	if err == nil {
		err = io.ErrUnexpectedEOF // a stream ends only if the server stops
	}

	if invalid, is := errors.AsType[*eventError](err); is {
		return after, invalid
	}

	return after, unreachable(err)
}

// eventError is an error in the content of a stream, or one that the event handler returned. Other errors mean that the broker could not be
// reached.
type eventError struct{ cause error }

// Error returns the text of the cause.
func (e *eventError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *eventError) Unwrap() error { return e.cause }

// readEvents reads server-sent events. It calls alive for each line, and handle for each event with data. It returns the position
// of the last complete event or heartbeat. If there is none, it returns the value of after.
func readEvents(stream io.Reader, after int64, alive func(), handle func(operatorapi.CloudEvent) error) (int64, error) {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxEventLine)

	data, position := "", after

	for lines.Scan() {
		alive()

		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")

		switch {
		case lines.Text() == "":
			if data != "" {
				var event operatorapi.CloudEvent
				if err := json.Unmarshal([]byte(data), &event); err != nil {
					return after, &eventError{fmt.Errorf("the stream contains an event that is not a CloudEvent: %w", err)}
				}

				if err := handle(event); err != nil {
					return after, &eventError{err}
				}
			}

			data, after = "", position
		case name == "id":
			given, err := strconv.ParseInt(value, 10, 64)
			if err != nil || given < 0 {
				return after, &eventError{errors.New("the stream contains an invalid position")}
			}

			position = given
		case name == "data":
			data += value
		}
	}

	return after, lines.Err()
}
