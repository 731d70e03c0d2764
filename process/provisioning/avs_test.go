package provisioning

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

func newAvS(t *testing.T) (*fakeavs.AvS, *avs.Client, *httptest.Server) {
	t.Helper()

	simulated := fakeavs.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := fakeavs.Config(server.URL)
	config.Timeout = 2 * time.Second

	return simulated, avs.New(config, http.DefaultTransport), server
}

func newEvaluation(client *avs.Client, objects Objects, external bool) createEvaluation {
	return createEvaluation{
		monitoring: Monitoring{AvS: client, ShootDomain: "example.com"}, instances: &fakeInstances{}, objects: objects, external: external,
	}
}

// TestAvSFaults checks the message after each fault, whether the creation is repeated, and the recorded state after the window.
//
//faults:table avs.md#creation
func TestAvSFaults(t *testing.T) {
	const (
		interval    = 30 * time.Second
		create      = "createEvaluation"
		credentials = "an operator must correct APP_AVS_OAUTH_TOKEN_ENDPOINT, APP_AVS_OAUTH_CLIENT_ID, APP_AVS_OAUTH_USERNAME and APP_AVS_OAUTH_PASSWORD"
	)

	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		wantText string
		wantWait time.Duration
		// uncertain reports that AvS may have created the evaluation. exists is the number of evaluations that it has created.
		uncertain bool
		exists    int
	}{
		"the response is lost, or the connection breaks/lost": {
			"AvS recognizes no repeated request",
			simulator.Fault{Operation: create, Lost: true},
			"AvS cannot be reached", interval, true, 1,
		},
		"the response is lost, or the connection breaks/broken": {
			"a connection that breaks does not tell whether the request arrived",
			simulator.Fault{Operation: create, Unsent: true},
			"AvS cannot be reached", interval, true, 0,
		},
		"is slow": {
			"a slow call may end later",
			simulator.Fault{Operation: create, Delay: time.Minute},
			"AvS did not respond within 2s", interval, true, 0,
		},
		"returns no JSON, or no ID/no JSON": {
			"the ID is unknown",
			simulator.Fault{Operation: create, Body: "<html>"},
			"AvS could not create the evaluation: it returned a response that is not the expected JSON", interval, true, 0,
		},
		"returns no JSON, or no ID/no ID": {
			"the ID is unknown",
			simulator.Fault{Operation: create, Body: "{}"},
			"AvS could not create the evaluation: its response has no ID", interval, true, 0,
		},
		"502 or 504, of a gateway/502": {
			"a gateway may have lost the response",
			simulator.Fault{Operation: create, Status: http.StatusBadGateway},
			"AvS could not create the evaluation: it returned HTTP status 502 Bad Gateway", interval, true, 0,
		},
		"502 or 504, of a gateway/504": {
			"a gateway may have lost the response",
			simulator.Fault{Operation: create, Status: http.StatusGatewayTimeout},
			"AvS could not create the evaluation: it returned HTTP status 504 Gateway Timeout", interval, true, 0,
		},
		"the token endpoint returns no token": {
			"without a token, no request is sent",
			simulator.Fault{Operation: simulator.TokenOperation, Body: "<html>"},
			"the token endpoint of AvS returned no token", interval, false, 0,
		},
		"the token endpoint returns 400, 401 or 403/400": {
			"an operator can correct the credentials",
			simulator.Fault{Operation: simulator.TokenOperation, Status: http.StatusBadRequest},
			"the token endpoint of AvS rejects the credentials: " + credentials, interval, false, 0,
		},
		"the token endpoint returns 400, 401 or 403/401": {
			"an operator can correct the credentials",
			simulator.Fault{Operation: simulator.TokenOperation, Status: http.StatusUnauthorized},
			"the token endpoint of AvS rejects the credentials: " + credentials, interval, false, 0,
		},
		"the token endpoint returns 400, 401 or 403/403": {
			"an operator can correct the credentials",
			simulator.Fault{Operation: simulator.TokenOperation, Status: http.StatusForbidden},
			"the token endpoint of AvS rejects the credentials: " + credentials, interval, false, 0,
		},
		"401 or 403 with a new token/401": {
			"an operator can correct the credentials",
			simulator.Fault{Operation: create, Status: http.StatusUnauthorized, Times: 2},
			"AvS rejects the credentials with HTTP status 401: " + credentials, interval, false, 0,
		},
		"401 or 403 with a new token/403": {
			"an operator can correct the rights",
			simulator.Fault{Operation: create, Status: http.StatusForbidden},
			"AvS rejects the credentials with HTTP status 403: " + credentials, interval, false, 0,
		},
		"429, 503 with Retry-After/429": {
			"the pause that the system asks for counts",
			simulator.Fault{Operation: create, Status: http.StatusTooManyRequests, RetryAfter: 42},
			"AvS could not create the evaluation: it returned HTTP status 429 Too Many Requests", 42 * time.Second, false, 0,
		},
		"429, 503 with Retry-After/503": {
			"the pause that the system asks for counts, up to five minutes",
			simulator.Fault{Operation: create, Status: http.StatusServiceUnavailable, RetryAfter: 3600},
			"AvS could not create the evaluation: it returned HTTP status 503 Service Unavailable", 5 * time.Minute, false, 0,
		},
		"408, 500 and other statuses above/503": {
			"an overloaded system can recover",
			simulator.Fault{Operation: create, Status: http.StatusServiceUnavailable},
			"AvS could not create the evaluation: it returned HTTP status 503 Service Unavailable", interval, false, 0,
		},
		"408, 500 and other statuses above/500": {
			"AvS has not created it",
			simulator.Fault{Operation: create, Status: http.StatusInternalServerError},
			"AvS could not create the evaluation: it returned HTTP status 500 Internal Server Error", interval, false, 0,
		},
		"408, 500 and other statuses above/408": {
			"AvS has not read the whole request",
			simulator.Fault{Operation: create, Status: http.StatusRequestTimeout},
			"AvS could not create the evaluation: it returned HTTP status 408 Request Timeout", interval, false, 0,
		},
		"409, 400 and other statuses/409": {
			"another attempt would be rejected as well",
			simulator.Fault{Operation: create, Status: http.StatusConflict},
			"AvS could not create the evaluation: it rejects the request with HTTP status 409 Conflict", 0, false, 0,
		},
		"409, 400 and other statuses/400": {
			"another attempt would be rejected as well",
			simulator.Fault{Operation: create, Status: http.StatusBadRequest},
			"AvS could not create the evaluation: it rejects the request with HTTP status 400 Bad Request", 0, false, 0,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulated, client, _ := newAvS(t)
			simulated.Inject(c.fault)

			if _, err := client.CreateInternal(t.Context(), avs.Cluster{}); err == nil || failure.Of(err).Text != c.wantText {
				t.Errorf("%s: shows %v, want %q", c.reason, err, c.wantText)
			} else if text := err.Error(); strings.Contains(text, fakeavs.Password) || strings.Contains(text, "token-1") {
				t.Errorf("the error contains a secret: %s", text)
			}

			for _, external := range []bool{false, true} {
				simulated, client, _ := newAvS(t)
				simulated.Inject(c.fault)

				objects := stepstest.New()
				step := newEvaluation(client, objects, external)

				first, wait, err := step.Run(t.Context(), newOperation(), logging.Discard())
				if wait != c.wantWait || (err != nil) != (wait == 0 && !external) {
					t.Fatalf("%s: external %t, runs again after %s, %v", c.reason, external, wait, err)
				}

				faulttable.Shows(t, "avs.md#creation", name, stepstest.Shown(first, err))

				wantRecords := map[bool][]string{true: {step.kind() + ": creating"}}[c.uncertain]
				if diff := cmp.Diff(wantRecords, objects.Lines()); diff != "" || len(simulated.Evaluations()) != c.exists {
					t.Errorf("%s: %d evaluations, records -want +got\n%s", c.reason, len(simulated.Evaluations()), diff)
				}

				wantEnd(t, c.fault, external)
				simulated.Reset()
				runStage(t, process.NewOperation(first.Record, first.Data, began), step, step)

				wantRecords = []string{step.kind() + ": created " + strconv.Itoa(101+c.exists)}
				if c.uncertain {
					wantRecords = slices.Insert(wantRecords, 0, step.kind()+" without ID: may exist twice 1")
				}

				if diff := cmp.Diff(wantRecords, objects.Lines()); diff != "" || len(simulated.Evaluations()) != c.exists+1 {
					t.Errorf("%s: then %d evaluations, records -want +got\n%s", c.reason, len(simulated.Evaluations()), diff)
				}
			}
		})
	}
}

// wantEnd checks that the creation of an internal evaluation fails after its window, and that an operation continues without an external
// one.
func wantEnd(t *testing.T, fault simulator.Fault, external bool) {
	t.Helper()

	simulated, client, _ := newAvS(t)
	fault.Times = -1
	simulated.Inject(fault)

	window := 10 * time.Minute
	if external {
		window = 20 * time.Minute
	}

	late := process.NewFailingOperation(newOperation().Record, newOperation().Data, began, began.Add(window))

	_, wait, err := newEvaluation(client, stepstest.New(), external).Run(t.Context(), late, logging.Discard())
	if wait != 0 || (err == nil) != external || err != nil && failure.Is(err, failure.Transient) {
		t.Errorf("external %t, after the window: runs again after %s, %v", external, wait, err)
	}
}

// TestAvSAway stops the server.
//
//faults:row avs.md#creation is unreachable: no connection
func TestAvSAway(t *testing.T) {
	_, client, server := newAvS(t)
	server.Close()

	if _, err := client.CreateInternal(t.Context(), avs.Cluster{}); err == nil || failure.Of(err).Text != "AvS cannot be reached" {
		t.Errorf("shows %v", err)
	}

	for _, external := range []bool{false, true} {
		objects := stepstest.New()
		step := newEvaluation(client, objects, external)

		after, wait, err := step.Run(t.Context(), newOperation(), logging.Discard())
		if err != nil || wait != avsInterval {
			t.Errorf("%s without a connection: %s, %v", step.Name(), wait, err)
		}

		faulttable.Shows(t, "avs.md#creation", "is unreachable: no connection", stepstest.Shown(after, err))

		if len(objects.Records) != 0 {
			t.Errorf("no request was sent, but the records are %v", objects.Lines())
		}
	}
}

// TestAvSBreaker checks that the circuit breaker keeps the step from calling AvS, and that nothing is recorded as uncertain.
func TestAvSBreaker(t *testing.T) {
	simulated, _, server := newAvS(t)
	system := upstream.New(upstream.Options{Name: "avs", Title: "AvS", Component: "avs", Calls: 1})
	client := avs.New(fakeavs.Config(server.URL), system.Transport(http.DefaultTransport))
	simulated.Inject(simulator.Fault{Operation: "createEvaluation", Status: http.StatusInternalServerError, Times: -1})

	for range 5 {
		if _, err := client.CreateInternal(t.Context(), avs.Cluster{}); err == nil {
			t.Fatal("the evaluation was created")
		}
	}

	if got := system.Status().State; got != upstream.Open {
		t.Fatalf("after five failed calls, the circuit breaker is %s", got)
	}

	calls := len(simulated.Calls())
	if _, err := client.CreateInternal(t.Context(), avs.Cluster{}); err == nil || !strings.HasPrefix(failure.Of(err).Text, "AvS is unavailable: ") {
		t.Errorf("shows %v", err)
	}

	for _, external := range []bool{false, true} {
		objects := stepstest.New()

		_, wait, err := newEvaluation(client, objects, external).Run(t.Context(), newOperation(), logging.Discard())
		if err != nil || wait <= 0 || len(objects.Records) != 0 {
			t.Errorf("external %t: runs again after %s, %v; records %v", external, wait, err, objects.Lines())
		}
	}

	if got := len(simulated.Calls()); got != calls {
		t.Errorf("AvS was called %d times", got-calls)
	}
}

// TestAvSTokenExpires ends the token of the client between two creations.
//
//faults:row avs.md#creation 401 because a token has ended early
func TestAvSTokenExpires(t *testing.T) {
	simulated, client, _ := newAvS(t)

	for _, id := range []string{"101", "102"} {
		objects := stepstest.New()
		runStage(t, newOperation(), newEvaluation(client, objects, false))

		if diff := cmp.Diff([]string{"internal evaluation: created " + id}, objects.Lines()); diff != "" {
			t.Errorf("a token that ended early is replaced: -want +got\n%s", diff)
		}

		simulated.ExpireTokens()
	}
}

// TestAvSLosesManyResponses checks that the step gives up after three requests, so that it does not create an evaluation at each
// attempt.
func TestAvSLosesManyResponses(t *testing.T) {
	for _, external := range []bool{false, true} {
		simulated, client, _ := newAvS(t)
		simulated.Inject(simulator.Fault{Operation: "createEvaluation", Lost: true, Times: -1})

		operation, objects := newOperation(), stepstest.New()
		step := newEvaluation(client, objects, external)

		var (
			wait time.Duration
			err  error
		)

		for range maxUnanswered {
			if operation, wait, err = step.Run(t.Context(), operation, logging.Discard()); err != nil || wait != avsInterval {
				t.Fatalf("%s: %s, %v", step.Name(), wait, err)
			}
		}

		_, wait, err = step.Run(t.Context(), operation, logging.Discard())
		if wait != 0 || failure.Is(err, failure.Permanent) == external || (err == nil) != external {
			t.Errorf("%s: the last attempt returns %s, %v", step.Name(), wait, err)
		}

		want := []string{step.kind() + " without ID: may exist twice 2", step.kind() + ": creating"}
		if diff := cmp.Diff(want, objects.Lines()); diff != "" || len(simulated.Evaluations()) != maxUnanswered+1 {
			t.Errorf("%s: %d evaluations, records -want +got\n%s", step.Name(), len(simulated.Evaluations()), diff)
		}
	}
}

func TestAvSReplacesALeftOver(t *testing.T) {
	simulated, client, _ := newAvS(t)
	objects := stepstest.New()
	runStage(t, newOperation(), newEvaluation(client, objects, false))

	objects.Records[0].State = environment.OutsideLeftOver

	runStage(t, newOperation(), newEvaluation(client, objects, false))

	if diff := cmp.Diff([]string{"internal evaluation: created 102"}, objects.Lines()); diff != "" || len(simulated.Evaluations()) != 1 {
		t.Errorf("AvS has %v, records -want +got\n%s", simulated.Holds(), diff)
	}
}

func TestExternalEvaluationNeedsADomain(t *testing.T) {
	own := func(domain string) *fakeInstances {
		stored := environment.Instance{ID: "instance-1", Name: "own"}
		stored.Request.Cluster.Own = &environment.OwnCluster{ShootName: "s", ShootDomain: domain}

		return &fakeInstances{instance: stored}
	}

	cases := map[string]struct {
		reason    string
		instances *fakeInstances
		provider  string
		want      []string
	}{
		"Managed": {"the domain of a cluster contains its name", &fakeInstances{}, "aws", []string{"https://healthz.c-1234567.example.com/healthz/ready"}},
		"Own":     {"the tenant names the domain", own("own.example.org"), "", []string{"https://healthz.own.example.org/healthz/ready"}},
		"Unknown": {"the tenant need not name it", own(""), "", nil},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			simulated, client, _ := newAvS(t)
			step := newEvaluation(client, stepstest.New(), true)
			step.instances = c.instances

			operation := newOperation()
			operation.Data.Instance.Provider, operation.Data.Instance.Request = c.provider, environment.Request{}
			runStage(t, operation, step)

			var got []string
			for _, evaluation := range simulated.Evaluations() {
				got = append(got, evaluation.URL)
			}

			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}

// clusters is a Provisioner that knows one cluster, or that returns err.
type clusters struct{ err error }

func (c clusters) Cluster(context.Context, string, string) (provisionerclient.Cluster, error) {
	return provisionerclient.Cluster{Name: "c-1234567", Region: "eu-central-1"}, c.err
}

// TestAvSTags checks after which faults the step is repeated, and that the tags are complete afterwards and never duplicated.
//
//faults:table avs.md#tags
func TestAvSTags(t *testing.T) {
	const (
		interval = 30 * time.Second
		lasting  = -1
		get      = "getEvaluation"
		add      = "addTag"
	)

	all := []avs.Tag{{Content: "c-1234567", ClassID: 11, ClassName: "class-11"}, {Content: "eu-central-1", ClassID: 13, ClassName: "class-13"}}

	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		err      error // of the Provisioner
		wantWait time.Duration
		want     []avs.Tag
	}{
		"is unreachable, or its response is lost/unreachable": {"an outage can pass", simulator.Fault{Unsent: true, Times: 2}, nil, interval, all},
		"is slow":              {"a call has a timeout", simulator.Fault{Delay: time.Minute}, nil, interval, all},
		"returns no JSON/read": {"a proxy may answer with HTML", simulator.Fault{Operation: get, Body: "<html>"}, nil, interval, all},
		"is unreachable, or its response is lost/lost": {"a tag whose response was lost is not added again", simulator.Fault{Operation: add, Lost: true}, nil, interval, all},
		"returns no JSON/tag":                          {"a proxy may have answered", simulator.Fault{Operation: add, Body: "<html>"}, nil, interval, all},
		"401 because a token has ended early":          {"a token that ended early is replaced", simulator.Fault{Operation: get, Status: http.StatusUnauthorized}, nil, 0, all},
		"401 or 403 with a new token/401":              {"the new token is rejected, too", simulator.Fault{Operation: get, Status: http.StatusUnauthorized, Times: 2}, nil, interval, all},
		"401 or 403 with a new token/403":              {"an operator can correct the rights", simulator.Fault{Operation: add, Status: http.StatusForbidden}, nil, interval, all},
		"404: somebody has removed the evaluation":     {"nothing is left to tag", simulator.Fault{Operation: get, Status: http.StatusNotFound, Times: lasting}, nil, 0, nil},
		"409, 400 and other statuses/409":              {"AvS may reject a tag", simulator.Fault{Operation: add, Status: http.StatusConflict, Times: lasting}, nil, 0, nil},
		"409, 400 and other statuses/400":              {"AvS may reject a tag", simulator.Fault{Operation: add, Status: http.StatusBadRequest, Times: lasting}, nil, 0, nil},
		"429, 503 with Retry-After/429":                {"the pause of the system counts", simulator.Fault{Operation: add, Status: http.StatusTooManyRequests, RetryAfter: 42}, nil, 42 * time.Second, all},
		"429, 503 with Retry-After/503":                {"at most five minutes", simulator.Fault{Operation: add, Status: http.StatusServiceUnavailable, RetryAfter: 3600}, nil, 5 * time.Minute, all},
		"408, 500 and above/408":                       {"a gateway may have lost the request", simulator.Fault{Operation: add, Status: http.StatusRequestTimeout}, nil, interval, all},
		"408, 500 and above/500":                       {"AvS may recover", simulator.Fault{Operation: get, Status: http.StatusInternalServerError}, nil, interval, all},
		"408, 500 and above/503":                       {"an overloaded system can recover", simulator.Fault{Operation: add, Status: http.StatusServiceUnavailable}, nil, interval, all},
		"the Provisioner is unreachable":               {"the Provisioner knows the cluster", simulator.Fault{Operation: "none"}, failure.New(failure.Transient, "the Provisioner cannot be reached"), interval, all},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulated, client, _ := newAvS(t)
			objects := stepstest.New()
			runStage(t, newOperation(), newEvaluation(client, objects, false))
			simulated.Inject(c.fault)

			step := tagEvaluation{monitoring: Monitoring{AvS: client}, clusters: clusters{c.err}, objects: objects}

			after, wait, err := step.Run(t.Context(), newOperation(), logging.Discard())
			if err != nil || wait != c.wantWait {
				t.Fatalf("%s: runs again after %s, %v", c.reason, wait, err)
			}

			faulttable.Shows(t, "avs.md#tags", name, stepstest.Shown(after, err))

			if c.wantWait > 0 {
				c.fault.Times = lasting
				simulated.Inject(c.fault)

				late := process.NewFailingOperation(newOperation().Record, newOperation().Data, began, began.Add(20*time.Minute))
				runStage(t, late, step) // the operation continues without the tags
				simulated.Reset()

				step.clusters = clusters{}
				runStage(t, newOperation(), step, step)
			}

			if diff := cmp.Diff(c.want, simulated.Evaluations()["101"].Tags, cmp.Transformer("empty", func(tags []avs.Tag) map[avs.Tag]int {
				counted := map[avs.Tag]int{}
				for _, tag := range tags {
					counted[tag]++
				}

				return counted
			})); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}

	simulated, client, _ := newAvS(t)
	runStage(t, newOperation(), tagEvaluation{monitoring: Monitoring{AvS: client}, clusters: clusters{}, objects: stepstest.New()})

	if calls := simulated.Calls(); len(calls) != 0 {
		t.Errorf("without an evaluation, AvS was called: %v", calls)
	}
}

// TestMonitoringSteps checks which evaluations an instance gets.
func TestMonitoringSteps(t *testing.T) {
	cases := map[string]struct {
		plan, provider string
		monitoring     Monitoring
		want           []string
	}{
		"Plan":     {"aws", "aws", Monitoring{Internal: true, External: true, Tags: true}, []string{"AVS_Create_Internal_Eval_Step", "AVS_Create_External_Eval_Step", "AVS_Tags"}},
		"Trial":    {"trial", "aws", Monitoring{Internal: true, External: true, Tags: true}, []string{"AVS_Create_Internal_Eval_Step", "AVS_Tags"}},
		"Free":     {"free", "aws", Monitoring{Internal: true, External: true, Tags: true}, []string{"AVS_Create_Internal_Eval_Step", "AVS_Tags"}},
		"Own":      {"own_cluster", "", Monitoring{Internal: true, External: true, Tags: true}, []string{"AVS_Create_Internal_Eval_Step", "AVS_Create_External_Eval_Step"}},
		"Internal": {"aws", "aws", Monitoring{Internal: true}, []string{"AVS_Create_Internal_Eval_Step"}},
		"External": {"aws", "aws", Monitoring{External: true}, []string{"AVS_Create_External_Eval_Step"}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			operation := newOperation()
			operation.Data.Instance.PlanName, operation.Data.Ordered = c.plan, c.provider != ""
			c.monitoring.AvS = &avs.Client{}

			var got []string

			for _, stage := range Process(Options{Monitoring: c.monitoring}).Stages {
				for _, task := range stage.Steps {
					if strings.HasPrefix(task.Step.Name(), "AVS") && task.When.Met(operation) {
						got = append(got, task.Step.Name())
					}
				}
			}

			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}

	for _, stage := range Process(Options{}).Stages {
		for _, task := range stage.Steps {
			if strings.HasPrefix(task.Step.Name(), "AVS") && task.When.Met(newOperation()) {
				t.Errorf("%s runs without AvS", task.Step.Name())
			}
		}
	}
}
