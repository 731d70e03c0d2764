package auth_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/auth"
)

// door is a service with the users cf and olga, and the fake clock that determines when delayed logins are accepted again.
type door struct {
	*testing.T

	clock      *clocktesting.FakeClock
	authorizer *auth.Authorizer
	handler    http.Handler
}

func newDoor(t *testing.T, allowed int) door {
	t.Helper()

	d := door{T: t, clock: clocktesting.NewFakeClock(now)}

	access, err := build("127.0.0.1:1", func(options *auth.Options) {
		options.Users, options.Clock, options.Config.LoginFailures = "cf:right,olga:right", d.clock, allowed
	})
	if err != nil {
		t.Fatal(err)
	}

	d.authorizer = access.Authorizer
	d.handler = access.Authorizer.Require(auth.RoleOSB)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))

	return d
}

// login sends a request with the credentials from the address. It returns the status and, if it is set, the Retry-After header.
func (d door) login(name, password, address string) string {
	request := httptest.NewRequestWithContext(d.Context(), http.MethodGet, "/", http.NoBody)
	request.RemoteAddr = address + ":4711"
	request.SetBasicAuth(name, password)

	recorder := httptest.NewRecorder()
	d.handler.ServeHTTP(recorder, request)

	return strings.TrimSpace(strconv.Itoa(recorder.Code) + " " + recorder.Header().Get("Retry-After"))
}

func (d door) want(reason, got, want string) {
	d.Helper()

	if got != want {
		d.Errorf("%s: got %s, want %s", reason, got, want)
	}
}

func TestFailedLoginsAreDelayed(t *testing.T) {
	d := newDoor(t, 3)

	for range 3 {
		d.want("mistakes are allowed", d.login("cf", "wrong", "192.0.2.1"), "401")
	}

	d.want("the correct password does not stand out", d.login("cf", "right", "192.0.2.1"), "429 1")
	d.want("neither does a wrong one", d.login("cf", "wrong", "192.0.2.1"), "429 1")
	d.want("another address is not locked out", d.login("cf", "right", "192.0.2.2"), "200")
	d.want("another user is not locked out", d.login("olga", "right", "192.0.2.1"), "200")

	var delays []string

	for range 9 {
		wait := 1
		if _, after, delayed := strings.Cut(d.login("cf", "wrong", "192.0.2.1"), " "); delayed {
			wait, _ = strconv.Atoi(after)
		}

		delays = append(delays, strconv.Itoa(wait))

		d.clock.Step(time.Duration(wait) * time.Second)
		d.want("after the delay the password is compared", d.login("cf", "wrong", "192.0.2.1"), "401")
	}

	if diff := cmp.Diff("1 2 4 8 16 32 60 60 60", strings.Join(delays, " ")); diff != "" {
		t.Errorf("delays: -want +got\n%s", diff)
	}

	d.clock.Step(time.Minute)
	d.want("the correct password is accepted after the delay", d.login("cf", "right", "192.0.2.1"), "200")
	d.want("a success forgets the failures", d.login("cf", "wrong", "192.0.2.1"), "401")
	d.want("a success forgets the failures", d.login("cf", "right", "192.0.2.1"), "200")
}

func TestFailedLoginsAreForgotten(t *testing.T) {
	d := newDoor(t, 3)

	for range 3 {
		d.login("cf", "wrong", "192.0.2.1")
	}

	d.clock.Step(15 * time.Minute)

	for range 3 {
		d.want("old failures do not count", d.login("cf", "wrong", "192.0.2.1"), "401")
	}

	d.want("new failures count", d.login("cf", "wrong", "192.0.2.1"), "429 1")
}

func TestUnknownUsersAreDelayedToo(t *testing.T) {
	d := newDoor(t, 3)

	for range 3 {
		d.want("an unknown user", d.login("nobody", "wrong", "192.0.2.1"), "401")
	}

	d.want("the delay does not reveal which users exist", d.login("nobody", "wrong", "192.0.2.1"), "429 1")
}

// gate is an authenticator that lets no attempt continue before all expected ones have begun.
type gate struct {
	auth.Authenticator
	*sync.WaitGroup
}

func (g gate) Authenticate(r *http.Request) (auth.Identity, error) {
	g.Done()
	g.Wait()

	return g.Authenticator.Authenticate(r)
}

// concurrently sends attempts with the same password that all begin before any of them ends, and counts the responses.
func (d door) concurrently(attempts int, password string) map[string]int {
	held := gate{d.authorizer.Authenticator, &sync.WaitGroup{}}
	held.Add(attempts)

	d.authorizer.Authenticator = held
	responses, counts := make(chan string, attempts), map[string]int{}

	for range attempts {
		go func() { responses <- d.login("cf", password, "192.0.2.1") }()
	}

	for range attempts {
		counts[<-responses]++
	}

	return counts
}

func TestConcurrentFirstLogins(t *testing.T) {
	for password, want := range map[string]map[string]int{
		"wrong": {"401": 3, "429 1": 47},
		"right": {"200": 50},
	} {
		if diff := cmp.Diff(want, newDoor(t, 3).concurrently(50, password)); diff != "" {
			t.Errorf("%s password: -want +got\n%s", password, diff)
		}
	}
}

func TestConcurrentLoginsShareNoAttempt(t *testing.T) {
	d := newDoor(t, 3)

	for range 3 {
		d.login("cf", "wrong", "192.0.2.1")
	}

	d.clock.Step(time.Second)

	var (
		group    sync.WaitGroup
		mutex    sync.Mutex
		compared int
	)

	for range 50 {
		group.Go(func() {
			if d.login("cf", "wrong", "192.0.2.1") == "401" {
				mutex.Lock()
				defer mutex.Unlock()

				compared++
			}
		})
	}

	group.Wait()

	if compared != 1 {
		t.Errorf("%d passwords were compared in one interval, want 1", compared)
	}
}

func TestDelaysCanBeTurnedOff(t *testing.T) {
	d := newDoor(t, 0)

	for range 50 {
		d.want("no delay", d.login("cf", "wrong", "192.0.2.1"), "401")
	}
}
