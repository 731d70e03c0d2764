package fleet_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/environment/fleet"
)

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]fleet.Target{
		"all":                               {Target: "all"},
		"percentage=5":                      {Target: "all", Percentage: 5},
		"plan=aws,region=^eu-,state=failed": {PlanName: "aws", Region: "^eu-", State: "failed"},
		"account=a,subaccount=b,label=ring=canary,label=team": {GlobalAccount: "a", SubAccount: "b", Labels: "ring=canary,team"},
		"kubernetes-version=1.34,kyma-version=2.0":            {KubernetesVersion: "1.34", KymaVersion: "2.0"},
		"instance=i":         {InstanceID: "i"},
		"runtime=r":          {RuntimeID: "r"},
		"shoot=c-1":          {Shoot: "c-1"},
		`region=a{1\,2}`:     {Region: "a{1,2}"},
		"account=name=value": {GlobalAccount: "name=value"},
	} {
		got, err := fleet.ParseTarget(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}

	for text, want := range map[string]string{
		"":                                  "is not a condition of a selector",
		"plans=aws":                         `did you mean "plan"?`,
		"all,plan=aws":                      `"all" is not a condition`,
		"plan":                              "the condition plan of a selector has no value",
		"plan=":                             "has no value",
		"plan=aws,plan=gcp":                 "the condition plan is repeated",
		"state=fialed":                      "state must be one of",
		"percentage=101":                    "percentage must be a number from 1 to 100",
		"percentage=0":                      "percentage must be a number from 1 to 100",
		"percentage=few":                    "percentage must be a number from 1 to 100",
		"region=(":                          "region is not a valid regular expression",
		"label==x":                          "labels: the label name",
		"runtime=r,percentage=1":            "runtimeID cannot be combined",
		"plan=aws,":                         `"" is not a condition`,
		"shoot=" + strings.Repeat("a", 257): "257 bytes",
	} {
		_, err := fleet.ParseTarget(text)
		if _, is := errors.AsType[*fleet.ValidationError](err); !is || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// FuzzParseTarget checks that an accepted target is not empty, and that it can select.
func FuzzParseTarget(f *testing.F) {
	for _, text := range []string{"all", `plan=aws,region=a{1\,2},label=ring=canary,label=team,percentage=5`, "percentage=100", `account=\\,runtime=a`} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		target, err := fleet.ParseTarget(text)
		if err != nil {
			return
		}

		if target == (fleet.Target{}) {
			t.Errorf("%q is an empty target", text)
		}

		fleet.NewSelector(fleet.Targets{Include: []fleet.Target{target}}, "o").Selects(fleet.Candidate{})
	})
}

// FuzzTarget checks that a target that is encoded again keeps its meaning, and that a percentage of 0 differs from an absent one.
func FuzzTarget(f *testing.F) {
	for _, text := range []string{`{"target":"all"}`, `{"planName":"aws","percentage":5}`, `{"percentage":0}`, `{"percentage":null}`, `{"percentage":-0}`} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		var target, again fleet.Target
		if json.Unmarshal([]byte(text), &target) != nil {
			return
		}

		encoded, err := json.Marshal(target)
		if err != nil {
			t.Fatal(err)
		}

		if err := json.Unmarshal(encoded, &again); err != nil || again != target {
			t.Errorf("%q is %+v, and encoded again %+v, %v", text, target, again, err)
		}

		var given struct {
			Percentage *int `json:"percentage"`
		}
		if json.Unmarshal([]byte(text), &given) == nil && (given.Percentage == nil) != (target.Percentage == 0) {
			t.Errorf("%q has the percentage %d", text, target.Percentage)
		}
	})
}
