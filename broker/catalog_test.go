package broker_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/resources"
)

func TestB1B26Catalog(t *testing.T) {
	b := newBench(t)

	for _, form := range []string{"/v2", "/oauth/v2", "/oauth/cf-us10/v2"} {
		got := b.want("every path form has the catalog", b.do(call{method: "GET", path: form + "/catalog"}), 200)
		if services, ok := got.Body["services"].([]any); !ok || len(services) != 1 {
			b.Errorf("B1: services is %T", got.Body["services"])
		}

		if strings.Contains(got.Raw, "null") {
			b.Error("B1, B21: something in the catalog is null")
		}

		if got.Raw != string(b.options.Catalog.Published().Body) {
			b.Errorf("%s shows another catalog", form)
		}
	}
}

func TestB26ConditionalCatalog(t *testing.T) {
	b := newBench(t)
	tag := b.do(call{method: "GET", path: "/v2/catalog"}).Header.Get("Etag")

	cases := map[string]struct {
		reason string
		header string
		status int
	}{
		"Same":  {"who has it already gets nothing", tag, 304},
		"Weak":  {"comparing is weak", "W/" + tag, 304},
		"Among": {"several may be named", `"x", ` + tag, 304},
		"Any":   {"whatever there is", "*", 304},
		"Other": {"another one is not this one", `"x"`, 200},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got := b.want(test.reason, b.do(call{
				method: "GET", path: "/v2/catalog", header: map[string]string{"If-None-Match": test.header},
			}), test.status)
			if (got.Raw == "") != (test.status == 304) || got.Header.Get("Etag") != tag {
				t.Errorf("\n%s\ngot %d with ETag %s and body %q", test.reason, got.Status, got.Header.Get("Etag"), got.Raw)
			}
		})
	}
}

func TestB26LastModified(t *testing.T) {
	b := newBench(t)

	if got := b.do(call{method: "GET", path: "/v2/catalog"}); got.Header.Get("Last-Modified") != "" {
		b.Errorf("a time that is not known is told: %s", got.Header.Get("Last-Modified"))
	}

	logger, _ := logtest.NewNullLogger()
	watch := catalog.Watch{
		Catalog: b.options.Catalog, Files: resources.Catalog(), Since: b.instances.CatalogSince, Clock: clocktesting.NewFakeClock(b.clock.Now()), Log: logger,
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- watch.Part().Run(ctx) }()

	for b.options.Catalog.Published().Changed.IsZero() {
		runtime.Gosched()
	}

	stop()

	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	cases := map[string]struct {
		reason string
		header map[string]string
		status int
	}{
		"Same":     {"it has not changed since", map[string]string{"If-Modified-Since": "Wed, 02 Jan 2030 03:04:05 GMT"}, 304},
		"Before":   {"it has changed since", map[string]string{"If-Modified-Since": "Wed, 02 Jan 2030 03:04:04 GMT"}, 200},
		"Rubbish":  {"what is no time says nothing", map[string]string{"If-Modified-Since": "yesterday"}, 200},
		"OtherTag": {"a tag counts before the time", map[string]string{"If-Modified-Since": "Wed, 02 Jan 2030 03:04:05 GMT", "If-None-Match": `"x"`}, 200},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got := b.want(test.reason, b.do(call{method: "GET", path: "/v2/catalog", header: test.header}), test.status)
			if got.Header.Get("Last-Modified") != "Wed, 02 Jan 2030 03:04:05 GMT" {
				t.Errorf("%s: Last-Modified is %q", test.reason, got.Header.Get("Last-Modified"))
			}
		})
	}
}
