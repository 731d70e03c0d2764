package brokerclient

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func TestReadEvents(t *testing.T) {
	failed := errors.New("failed")

	cases := map[string]struct {
		reason string
		stream string
		ids    []string
		after  int64
		err    string
	}{
		"events":      {"fields in any order", "retry: 1\n\nid: 4\ndata: {\"id\":\"a\"}\n\ndata:{\"id\":\"b\"}\nid:5\n\n", []string{"a", "b"}, 5, ""},
		"several":     {"lines of data are joined", "id: 4\ndata: {\"id\":\ndata: \"a\"}\n\n", []string{"a"}, 4, ""},
		"heartbeat":   {"a position without data", ": heartbeat\nid: 7\n\n", nil, 7, ""},
		"broken":      {"an incomplete event is read again", "id: 4\ndata: {\"id\":\"a\"}\n\nid: 5\ndata: {\"id\":\"b\"}\n", []string{"a"}, 4, ""},
		"no position": {"positions are numbers", "id: x\n\n", nil, 3, "invalid position"},
		"negative":    {"positions are not negative", "id: -4\n\n", nil, 3, "invalid position"},
		"no event":    {"data is JSON", "id: 4\ndata: x\n\n", nil, 3, "not a CloudEvent"},
		"refused":     {"the caller stops", "id: 4\ndata: {\"id\":\"stop\"}\n\n", []string{"stop"}, 3, "failed"},
		"endless":     {"lines are limited", "data: " + strings.Repeat("x", maxEventLine), nil, 3, "too long"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var ids []string

			lines := 0

			after, err := readEvents(strings.NewReader(c.stream), 3, func() { lines++ }, func(event operatorapi.CloudEvent) error {
				if ids = append(ids, event.ID); event.ID == "stop" {
					return failed
				}

				return nil
			})
			if diff := cmp.Diff(c.ids, ids); diff != "" || after != c.after {
				t.Errorf("%s: position %d, want %d, -want +got\n%s", c.reason, after, c.after, diff)
			}

			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: got %v", c.reason, err)
			}

			if lines == 0 && c.err != "too long" {
				t.Error("no line was reported")
			}
		})
	}
}

// transport is an http.RoundTripper.
type transport func(r *http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// TestFollowSilentStream checks that a server without heartbeats causes a temporary error, after which the caller can resume the stream.
func TestFollowSilentStream(t *testing.T) {
	for name, server := range map[string]transport{
		"no response": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()

			return nil, r.Context().Err()
		},
		"no heartbeats": func(r *http.Request) (*http.Response, error) {
			body, stream := io.Pipe()
			context.AfterFunc(r.Context(), func() { stream.CloseWithError(r.Context().Err()) })

			return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := New(Config{Address: "http://broker"})
				client.http.Transport = server

				after, err := client.FollowEvents(t.Context(), operatorapi.ListEventsParams{}, 3, nil)
				if !errors.Is(err, errSilent) || after != 3 {
					t.Errorf("position %d, error %v", after, err)
				}

				if failed, is := errors.AsType[*UnreachableError](err); !is || !failed.Temporary() {
					t.Errorf("the error is not temporary: %v", err)
				}
			})
		})
	}
}

// FuzzEvents reads arbitrary streams. Positions are never negative.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{"", "id: 1\ndata: {}\n\n", ": x\n\n\n", "data: null\n\n", "id: 9223372036854775808\n\n", "id\ndata\n\n", "data: {\"data\":1}\n\n"} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, stream []byte) {
		after, _ := readEvents(bytes.NewReader(stream), 0, func() {}, func(operatorapi.CloudEvent) error { return nil })
		if after < 0 {
			t.Errorf("position %d", after)
		}
	})
}
