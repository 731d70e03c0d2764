package fleet_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment/fleet"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func read(t *testing.T, body string) fleet.Parameters {
	t.Helper()

	var parameters fleet.Parameters
	if err := json.Unmarshal([]byte(body), &parameters); err != nil {
		t.Fatal(err)
	}

	return parameters
}

func TestComplete(t *testing.T) {
	for name, c := range map[string]struct {
		reason, body string
		schedule     string
		start        time.Time
		workers      int
	}{
		"only targets": {
			"without a strategy, and without a version, the defaults apply",
			`{"targets":{"include":[{"target":"all"}]}}`, "immediate", now, 1,
		},
		"everything that clients of Kyma Environment Broker send": {
			"the fields that the broker sets are ignored",
			`{"targets":{"include":[{"target":"all"}]},"strategy":{"type":"parallel","schedule":"now","scheduleTime":"0001-01-01T00:00:00Z",
			"parallel":{"workers":3}},"dryRun":true,"kyma":{"version":"2.0"},"kubernetes":{},"retryoperation":{"retryoperations":null,"immediate":false}}`,
			"now", now, 3,
		},
		"time": {
			"a time with an offset is stored in UTC",
			`{"targets":{"include":[{"target":"all"}]},"strategy":{"schedule":"2030-01-02T06:04:05+01:00"}}`,
			"2030-01-02T06:04:05+01:00", now.Add(2 * time.Hour), 1,
		},
		"time of the schedule": {
			"ScheduleTime is used without a schedule; names of fields are not case-sensitive",
			`{"targets":{"include":[{"target":"all"}]},"strategy":{"ScheduleTime":"2030-01-02T05:04:05Z"}}`,
			"2030-01-02T05:04:05Z", now.Add(2 * time.Hour), 1,
		},
		"past": {
			"a time in the past means now",
			`{"targets":{"include":[{"target":"all"}]},"strategy":{"schedule":"2029-01-02T05:04:05Z"}}`, "2029-01-02T05:04:05Z", now, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, c.body).Complete(now)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}

			if s := got.Strategy; s.Schedule != c.schedule || !s.ScheduleTime.Equal(c.start) || s.ScheduleTime.Location() != time.UTC ||
				s.Parallel.Workers != c.workers || s.Type != fleet.StrategyParallel || got.RetryOperation != nil {
				t.Errorf("%s: got %+v", c.reason, got)
			}
		})
	}
}

func TestInvalid(t *testing.T) {
	const all = `"targets":{"include":[{"target":"all"}]}`

	for name, c := range map[string]struct{ body, want string }{
		"nothing":           {`{}`, "targets.include is missing"},
		"no include":        {`{"targets":{"exclude":[{"target":"all"}]}}`, "targets.include is missing"},
		"empty target":      {`{"targets":{"include":[{}]}}`, `targets.include[0]: it is empty`},
		"empty exclude":     {`{"targets":{"include":[{"target":"all"}],"exclude":[{}]}}`, "targets.exclude[0]: it is empty"},
		"unknown target":    {`{"targets":{"include":[{"target":"some"}]}}`, `target must be "all"`},
		"all and a plan":    {`{"targets":{"include":[{"target":"all","planName":"aws"}]}}`, "allows no field except percentage"},
		"percentage":        {`{"targets":{"include":[{"target":"all","percentage":101}]}}`, "percentage must be a number from 1 to 100"},
		"no part":           {`{"targets":{"include":[{"target":"all","percentage":0}]}}`, "percentage must be a number from 1 to 100"},
		"no part of a plan": {`{"targets":{"include":[{"planName":"aws","percentage":0}]}}`, "percentage must be a number from 1 to 100"},
		"excluded no part":  {`{"targets":{"include":[{"target":"all"}],"exclude":[{"percentage":0}]}}`, "percentage must be a number from 1 to 100"},
		"negative part":     {`{"targets":{"include":[{"target":"all","percentage":-1}]}}`, "percentage must be a number from 1 to 100"},
		"invalid label":     {`{"targets":{"include":[{"labels":"a,,b"}]}}`, "targets.include[0]: labels: the label name"},
		"misspelled state":  {`{"targets":{"include":[{"target":"all"}],"exclude":[{"state":"fialed"}]}}`, "targets.exclude[0]: state must be one of"},
		"runtime and part":  {`{"targets":{"include":[{"runtimeID":"r","percentage":1}]}}`, "runtimeID cannot be combined"},
		"bad expression":    {`{"targets":{"include":[{"region":"("}]}}`, "region is not a valid regular expression"},
		"costly":            {`{"targets":{"include":[{"subAccount":"((a{100}){100}){100}"}]}}`, "subAccount is not a valid regular expression"},
		"long expression":   {`{"targets":{"include":[{"globalAccount":"` + strings.Repeat("a", 257) + `"}]}}`, "globalAccount has 257 bytes"},
		"long value":        {`{"targets":{"include":[{"shoot":"` + strings.Repeat("a", 257) + `"}]}}`, "257 bytes"},
		"many targets": {
			`{"targets":{"include":[` + strings.Repeat(`{"target":"all"},`, 100) + `{"target":"all"}]}}`, "targets.include has 101 entries",
		},
		"no workers":       {`{` + all + `,"strategy":{"parallel":{"workers":0}}}`, "workers must be a number from 1"},
		"negative workers": {`{` + all + `,"strategy":{"parallel":{"workers":-1}}}`, "workers must be a number from 1"},
		"many workers":     {`{` + all + `,"strategy":{"parallel":{"workers":1001}}}`, "from 1 to 1000"},
		"region workers":   {`{` + all + `,"strategy":{"parallel":{"workers":1,"workersPerRegion":-1}}}`, "must not be negative"},
		"empty wave":       {`{` + all + `,"strategy":{"waves":[{"number":1},{"soak":"1h"}]}}`, "strategy.waves[1]: it must have exactly one of"},
		"two fields":       {`{` + all + `,"strategy":{"waves":[{"number":1,"percentage":1}]}}`, "it must have exactly one of"},
		"negative number":  {`{` + all + `,"strategy":{"waves":[{"number":-1}]}}`, "number must be positive"},
		"large wave":       {`{` + all + `,"strategy":{"waves":[{"percentage":101}]}}`, "percentage a number from 1 to 100"},
		"bad label":        {`{` + all + `,"strategy":{"waves":[{"labels":"=x"}]}}`, "strategy.waves[0]: labels: the label name"},
		"bad soak":         {`{` + all + `,"strategy":{"waves":[{"number":1,"soak":"2 days"}]}}`, "soak must be a duration such as 2h30m"},
		"negative soak":    {`{` + all + `,"strategy":{"waves":[{"number":1,"soak":"-1h"}]}}`, "soak must be a duration"},
		"long soak":        {`{` + all + `,"strategy":{"waves":[{"number":1,"soak":"721h"}]}}`, "at most 30 days"},
		"many waves": {
			`{` + all + `,"strategy":{"waves":[` + strings.Repeat(`{"number":1},`, 20) + `{"number":1}]}}`, "strategy.waves has 21 entries",
		},
		"empty gate":       {`{` + all + `,"strategy":{"failureGate":{}}}`, "strategy.failureGate must contain failures"},
		"large gate":       {`{` + all + `,"strategy":{"failureGate":{"percentage":101}}}`, "strategy.failureGate must contain"},
		"negative gate":    {`{` + all + `,"strategy":{"failureGate":{"failures":-1}}}`, "strategy.failureGate must contain"},
		"unknown strategy": {`{` + all + `,"strategy":{"type":"serial"}}`, `strategy.type must be "parallel"`},
		"old schedule":     {`{` + all + `,"strategy":{"schedule":"maintenanceWindow"}}`, "Set strategy.maintenanceWindow to true"},
		"bad schedule":     {`{` + all + `,"strategy":{"schedule":"soon"}}`, "strategy.schedule must be"},
		"late schedule":    {`{` + all + `,"strategy":{"schedule":"2031-01-02T15:04:05Z"}}`, "more than 90 days"},
		"past deadline":    {`{` + all + `,"strategy":{"deadline":"2030-01-02T03:04:05Z"}}`, "strategy.deadline must be in the future"},
		"early deadline":   {`{` + all + `,"strategy":{"schedule":"2030-01-03T05:04:05Z","deadline":"2030-01-03T05:04:05Z"}}`, "after the earliest start"},
		"late deadline":    {`{` + all + `,"strategy":{"deadline":"2031-01-02T15:04:05Z"}}`, "strategy.deadline must not be more than 90 days"},
		"machine image":    {`{` + all + `,"kubernetes":{"machineImage":"x"}}`, "the plan determines the machine image"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, c.body).Complete(now); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestSelector(t *testing.T) {
	candidates := []fleet.Candidate{
		{
			GlobalAccount: "ga-1", SubAccount: "sa-1", Region: "eu-west-1", RuntimeID: "r1", PlanName: "aws", Shoot: "c-1", InstanceID: "one",
			State: "failed", KubernetesVersion: "1.34.2", KymaVersion: "2.0.0", Labels: map[string]string{"ring": "canary"},
		},
		{
			GlobalAccount: "ga-1", SubAccount: "sa-2", Region: "westeurope", RuntimeID: "r2", PlanName: "azure", Shoot: "c-2", InstanceID: "two",
			State: "succeeded", KubernetesVersion: "1.34", KymaVersion: "2.0.10", Labels: map[string]string{"ring": "late", "team": ""},
		},
		{
			GlobalAccount: "ga-2", SubAccount: "sa-3", Region: "eu-west-1", RuntimeID: "r3", PlanName: "aws", Shoot: "c-3", InstanceID: "three",
			State: "succeeded", KubernetesVersion: "1.3",
		},
	}

	for name, c := range map[string]struct{ reason, targets, want string }{
		"all":            {"all", `{"include":[{"target":"all"}]}`, "one two three"},
		"account":        {"a part of the value matches", `{"include":[{"globalAccount":"-1"}]}`, "one two"},
		"anchored":       {"the anchors hold", `{"include":[{"globalAccount":"^-1$"}]}`, ""},
		"region":         {"a regular expression", `{"include":[{"region":"^eu|west"}]}`, "one two three"},
		"plan":           {"plans are compared as a whole", `{"include":[{"planName":"a"}]}`, ""},
		"all fields":     {"all fields must match", `{"include":[{"planName":"aws","subAccount":"sa-[23]"}]}`, "three"},
		"runtime":        {"the runtime ID alone counts", `{"include":[{"runtimeID":"r2","planName":"aws"}]}`, "two"},
		"Shoot":          {"by name", `{"include":[{"shoot":"c-3"}]}`, "three"},
		"instance":       {"by ID", `{"include":[{"instanceID":"one"},{"instanceID":"two"}]}`, "one two"},
		"exclude":        {"exclusion wins", `{"include":[{"target":"all"}],"exclude":[{"planName":"azure"},{"shoot":"c-1"}]}`, "three"},
		"state":          {"the state of the runtime", `{"include":[{"state":"succeeded"}]}`, "two three"},
		"minor version":  {"the beginning of a version matches, up to a dot", `{"include":[{"kubernetesVersion":"1.34"}]}`, "one two"},
		"version":        {"a whole version", `{"include":[{"kymaVersion":"2.0.1"},{"kubernetesVersion":"1.34.2"}]}`, "one"},
		"label":          {"the value of a label", `{"include":[{"labels":"ring=canary"}]}`, "one"},
		"labels":         {"all conditions must hold", `{"include":[{"labels":"ring,team"}]}`, "two"},
		"no label":       {"instances without labels do not match", `{"include":[{"target":"all"}],"exclude":[{"labels":"ring"}]}`, "three"},
		"percentage":     {"a hundred percent", `{"include":[{"planName":"aws","percentage":100}]}`, "one three"},
		"null part":      {"null is no percentage", `{"include":[{"planName":"aws","percentage":null}]}`, "one three"},
		"part of all":    {"target all has parts", `{"include":[{"target":"all","percentage":100}]}`, "one two three"},
		"exclude of all": {"nothing is left", `{"include":[{"target":"all"}],"exclude":[{"target":"all"}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var selected []string

			selector := fleet.NewSelector(read(t, `{"targets":`+c.targets+`}`).Targets, "o")
			for _, candidate := range candidates {
				if selector.Selects(candidate) {
					selected = append(selected, candidate.InstanceID)
				}
			}

			if want := strings.Fields(c.want); !slices.Equal(selected, want) {
				t.Errorf("%s: got %v, want %v", c.reason, selected, want)
			}
		})
	}
}

// TestPercentage selects shares of 10,000 instances. A share has about the requested size, is always the same for an
// orchestration, differs between orchestrations, and contains the smaller shares.
func TestPercentage(t *testing.T) {
	const count = 10_000

	selected := func(orchestrationID string, percentage int) map[string]bool {
		targets := fleet.Targets{Include: []fleet.Target{{Target: "all", Percentage: fleet.Share(percentage)}}}
		selector, found := fleet.NewSelector(targets, orchestrationID), map[string]bool{}

		for i := range count {
			if id := fmt.Sprint("instance-", i); selector.Selects(fleet.Candidate{InstanceID: id}) {
				found[id] = true
			}
		}

		return found
	}

	for _, percentage := range []int{1, 10, 50} {
		found := selected("o1", percentage)

		if want := count * percentage / 100; len(found) < want*8/10 || len(found) > want*12/10 {
			t.Errorf("%d %%: %d of %d instances", percentage, len(found), count)
		}

		if !maps.Equal(found, selected("o1", percentage)) {
			t.Errorf("%d %%: the second selection differs", percentage)
		}

		if maps.Equal(found, selected("o2", percentage)) {
			t.Errorf("%d %%: another orchestration selects the same", percentage)
		}

		larger := selected("o1", percentage+1)
		for id := range found {
			if !larger[id] {
				t.Errorf("%d %% does not include %s of %d %%", percentage+1, id, percentage)
			}
		}
	}
}
