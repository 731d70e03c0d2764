package httpserver_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// TestLoad checks that a service is busy for 100 ms after it worked on more than two requests per processor, and that requests
// that wait for background work do not count.
func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			load    httpserver.Load
			served  sync.WaitGroup
			respond = make(chan struct{})
			wait    = make(chan struct{})
		)

		handler := load.Count(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			<-respond

			failed := errors.New("the wait failed")
			if err := load.Exclude(func() error { <-wait; return failed }); !errors.Is(err, failed) {
				t.Errorf("Exclude returned %v, want %v", err, failed)
			}
		}))

		expect := func(want bool, when string) {
			t.Helper()
			synctest.Wait()

			if got := load.Busy(); got != want {
				t.Errorf("%s: Busy returned %t", when, got)
			}
		}

		limit := 2 * runtime.GOMAXPROCS(0)
		for range limit + 1 {
			expect(false, "with two requests per processor")

			served.Go(func() {
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/", nil))
			})
		}

		expect(true, "with one more request")
		close(respond)
		time.Sleep(99 * time.Millisecond)
		expect(true, "99 ms later")
		time.Sleep(time.Millisecond)
		expect(false, "while all requests wait for background work")
		close(wait)
		served.Wait()
		expect(false, "after all responses")
	})
}
