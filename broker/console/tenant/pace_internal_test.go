package tenant

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestPace simulates open pages that refresh themselves at the interval that they are given. Together, they stay within the budget, and a few pages
// refresh every two seconds.
func TestPace(t *testing.T) {
	t.Parallel()

	const minute = 60

	for pages, want := range map[int]struct{ interval, requests int }{
		1:   {shortest, minute / shortest},
		40:  {shortest, 40 * minute / shortest},
		400: {20, 400 * minute / 20},
	} {
		var paced pace

		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/instances/one", http.NoBody)
		request.Header.Set("X-Console-Live", "1")

		start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
		next, interval := make([]int, pages), 0

		run := func(from, until int) (requests int) {
			for second := from; second < until; second++ {
				for page := range next {
					if next[page] <= second {
						interval = paced.interval(request, start.Add(time.Duration(second)*time.Second))
						next[page] = second + interval
						requests++
					}
				}
			}

			return requests
		}

		run(0, 5*minute)

		requests := run(5*minute, 6*minute)
		if interval < want.interval-1 || interval > want.interval+1 || requests > want.requests*11/10 || requests < want.requests*9/10 {
			t.Errorf("%d pages: interval %d and %d requests in a minute, want about %+v", pages, interval, requests, want)
		}
	}
}
