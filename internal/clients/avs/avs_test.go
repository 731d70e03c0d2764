package avs_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

func config(address string) avs.Config {
	config := fakeavs.Config(address)
	config.Timeout = 10 * time.Second

	return config
}

func start(t *testing.T) (*fakeavs.AvS, string) {
	t.Helper()

	simulated := fakeavs.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	return simulated, server.URL
}

func cluster() avs.Cluster {
	return avs.Cluster{
		InstanceID: "instance-1", Name: "first", GlobalAccountID: "tenant-1", SubAccountID: "sub-1", ShootName: "c-1234567",
		Provider: "azure", PlanName: "azure", Domain: "c-1234567.example.com",
	}
}

func TestEvaluations(t *testing.T) {
	simulated, address := start(t)

	settings := config(address)
	settings.Internal.Service, settings.Internal.Tags = "kyma", []string{"production:7:stage", "https://example.com:8:link"}
	client := avs.New(settings, http.DefaultTransport)

	internal, err := client.CreateInternal(t.Context(), cluster())
	if err != nil {
		t.Fatal(err)
	}

	external, err := client.CreateExternal(t.Context(), cluster())
	if err != nil {
		t.Fatal(err)
	}

	const description = `{"instanceName":"first","globalAccountID":"tenant-1","subAccountID":"sub-1","instanceID":"instance-1","shootName":"c-1234567"}`

	want := avs.Definition{
		DefinitionType: "BASIC", Name: "K8S-AZR-Kyma-int-instance-1-first", Description: description, Service: "kyma", Interval: 60,
		TesterAccessID: 3, Timeout: 30000, ContentCheck: "error", ContentCheckType: "NOT_CONTAINS", Threshold: "30000", GroupID: 1,
		Visibility: "PUBLIC", ParentID: 2,
		Tags: []avs.Tag{{Content: "production", ClassID: 7, ClassName: "stage"}, {Content: "https://example.com", ClassID: 8, ClassName: "link"}},
	}
	if diff := cmp.Diff(want, simulated.Evaluations()[internal]); diff != "" {
		t.Errorf("internal: -want +got\n%s", diff)
	}

	want.Name, want.Service, want.TesterAccessID, want.Tags = "K8S-AZR-Kyma-ext-instance-1-first", "", 4, []avs.Tag{}
	want.URL, want.CheckType = "https://healthz.c-1234567.example.com/healthz/ready", "HTTPSGET"

	if diff := cmp.Diff(want, simulated.Evaluations()[external]); diff != "" {
		t.Errorf("external: -want +got\n%s", diff)
	}

	if err := client.SetLifecycle(t.Context(), internal, avs.Maintenance); err != nil {
		t.Error(err)
	}

	found, err := client.Find(t.Context(), internal)
	if err != nil || found.Status != avs.Maintenance || len(found.Tags) != 2 {
		t.Errorf("found %+v, %v", found, err)
	}

	for range 2 { // the second time, AvS has neither of them
		for _, id := range []string{internal, external} {
			if err := client.Remove(t.Context(), id, "azure", id == internal); err != nil {
				t.Error(err)
			}
		}
	}

	if left := simulated.Holds(); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}

	if err := client.SetLifecycle(t.Context(), internal, avs.Active); !failure.Is(err, failure.NotFound) {
		t.Errorf("the state of a removed evaluation: %v", err)
	}
}

func TestTagsAreAddedOnce(t *testing.T) {
	simulated, address := start(t)

	settings := config(address)
	settings.Tags = avs.TagClasses{Enabled: true, ShootName: 11, SeedName: 12, Region: 13}
	client := avs.New(settings, http.DefaultTransport)

	id, err := client.CreateInternal(t.Context(), cluster())
	if err != nil {
		t.Fatal(err)
	}

	// The response to the second tag is lost.
	simulated.Inject(simulator.Fault{Operation: "addTag", Delay: time.Nanosecond}, simulator.Fault{Operation: "addTag", Lost: true})

	tags := client.TagsOf("c-1234567", "seed-1", "westeurope")
	if err := client.Tag(t.Context(), id, tags); !failure.Is(err, failure.Transient) {
		t.Errorf("with a lost response: %v", err)
	}

	if err := client.Tag(t.Context(), id, tags); err != nil {
		t.Error(err)
	}

	want := []avs.Tag{
		{Content: "c-1234567", ClassID: 11, ClassName: "class-11"},
		{Content: "seed-1", ClassID: 12, ClassName: "class-12"},
		{Content: "westeurope", ClassID: 13, ClassName: "class-13"},
	}
	if diff := cmp.Diff(want, simulated.Evaluations()[id].Tags); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestTrialSettings(t *testing.T) {
	trial := avs.Trial{AccessID: 21, GroupID: 22, ParentID: 23}

	cases := map[string]struct {
		reason     string
		plan       string
		trial      avs.Trial
		wantParent int64
	}{
		"Trial":      {"plan trial has settings of its own", "trial", trial, 23},
		"Free":       {"plan free uses those of trials", "free", trial, 23},
		"Other":      {"other plans do not", "azure", trial, 2},
		"Incomplete": {"all three IDs are needed", "trial", avs.Trial{AccessID: 21, ParentID: 23}, 2},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			simulated, address := start(t)

			settings := config(address)
			settings.Trial = c.trial
			client := avs.New(settings, http.DefaultTransport)

			ordered := cluster()
			ordered.PlanName = c.plan

			id, err := client.CreateInternal(t.Context(), ordered)
			if got := simulated.Evaluations()[id]; err != nil || got.ParentID != c.wantParent {
				t.Errorf("%s: %+v, %v", c.reason, got, err)
			}

			if err := client.Remove(t.Context(), id, c.plan, true); err != nil || len(simulated.Holds()) != 0 {
				t.Errorf("%s: after the removal AvS has %v, %v", c.reason, simulated.Holds(), err)
			}
		})
	}
}

func TestNamesAreCut(t *testing.T) {
	simulated, address := start(t)

	named := cluster()
	named.Name, named.Provider = strings.Repeat("ä", 300), ""

	id, err := avs.New(config(address), http.DefaultTransport).CreateInternal(t.Context(), named)
	if err != nil {
		t.Fatal(err)
	}

	got := simulated.Evaluations()[id]
	if name := []rune(got.Name); len(name) != 80 || !strings.HasPrefix(got.Name, "K8S-CC-Kyma-int-instance-1-ä") {
		t.Errorf("the name is %q", got.Name)
	}

	if description := []rune(got.Description); len(description) != 255 {
		t.Errorf("the description has %d characters", len(description))
	}
}

func TestResponseWithoutID(t *testing.T) {
	simulated, address := start(t)
	simulated.Inject(simulator.Fault{Operation: "createEvaluation", Body: `{"threshold": 30000}`})

	if id, err := avs.New(config(address), http.DefaultTransport).CreateInternal(t.Context(), cluster()); !failure.Is(err, failure.Transient) {
		t.Errorf("got %q, %v", id, err)
	}
}

func TestConfig(t *testing.T) {
	cases := map[string]struct {
		change func(*avs.Config)
		want   string
	}{
		"Valid":       {func(*avs.Config) {}, ""},
		"Off":         {func(c *avs.Config) { *c = avs.Config{} }, ""},
		"URL":         {func(c *avs.Config) { c.TokenURL = "avs" }, "APP_AVS_OAUTH_TOKEN_ENDPOINT: must be an http or https URL"},
		"Credentials": {func(c *avs.Config) { c.Password = "" }, "APP_AVS_API_ENDPOINT: also set APP_AVS_OAUTH_CLIENT_ID"},
		"Tags":        {func(c *avs.Config) { c.External.Tags = []string{"production"} }, "APP_AVS_EXTERNAL_TESTER_TAGS: a tag must have the form CONTENT:CLASS_ID:CLASS_NAME"},
		"TagClass":    {func(c *avs.Config) { c.Internal.Tags = []string{"production:x:stage"} }, "APP_AVS_INTERNAL_TESTER_TAGS: a tag must have the form"},
		"Calls":       {func(c *avs.Config) { c.Calls = 0 }, "APP_AVS_CALLS and APP_AVS_TIMEOUT: must be positive"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			settings := config("http://avs.example.com")
			c.change(&settings)

			err := settings.Check()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
