package runtimeorder_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/runtimeorder"
)

// provisioner gives its answers one after the other and keeps which ranges it was sent.
type provisioner struct {
	answers []error
	ranges  []string
}

func (p *provisioner) ProvisionRuntime(_ context.Context, _ provisionerclient.Caller, order *wire.ProvisionRuntimeInput,
) (provisionerclient.Operation, error) {
	answer := p.answers[len(p.ranges)]

	told := "none"
	if pods := order.ClusterConfig.GardenerConfig.PodsCidr; pods != nil {
		told = *pods
	}

	p.ranges = append(p.ranges, told)

	return provisionerclient.Operation{ID: "operation-1"}, answer
}

func TestPlace(t *testing.T) {
	notUnderstood := failure.Wrap(failure.Permanent, provisionerclient.ErrNotUnderstood, "podsCidr unknown field")
	away := failure.New(failure.Transient, "no answer")

	cases := map[string]struct {
		reason     string
		parameters string
		answers    []error
		want       []string
		wantKind   failure.Kind
	}{
		"ours": {
			reason: "our Provisioner is told the ranges", answers: []error{nil}, want: []string{"10.96.0.0/13"},
		},
		"former": {
			reason:  "the plan's ranges are left to Gardener where they cannot be told",
			answers: []error{notUnderstood, nil}, want: []string{"10.96.0.0/13", "none"},
		},
		"chosen": {
			reason:     "what a user chose is not dropped silently",
			parameters: `{"networking":{"nodes":"10.250.0.0/16","services":"10.104.0.0/13"}}`,
			answers:    []error{notUnderstood}, want: []string{"10.96.0.0/13"}, wantKind: failure.Permanent,
		},
		"never": {
			reason:     "an order that is not understood without them either is refused",
			parameters: `{"region":"eu-west-1"}`,
			answers:    []error{notUnderstood, notUnderstood}, want: []string{"10.96.0.0/13", "none"}, wantKind: failure.Permanent,
		},
		"away": {
			reason: "what is not understood is told from what was not heard", answers: []error{away}, want: []string{"10.96.0.0/13"},
			wantKind: failure.Transient,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ordered := instance("gcp", "region-1-a")
			ordered.Request.Parameters = json.RawMessage(c.parameters)

			order, err := runtimeorder.New(ordered)
			if err != nil {
				t.Fatal(err)
			}

			asked := &provisioner{answers: c.answers}
			_, err = runtimeorder.Place(t.Context(), asked, provisionerclient.Caller{}, ordered, order)

			if diff := cmp.Diff(c.want, asked.ranges); diff != "" {
				t.Errorf("%s: ranges that were told: -want +got\n%s", c.reason, diff)
			}

			if (err != nil) != (c.wantKind != "") || err != nil && failure.KindOf(err) != c.wantKind {
				t.Errorf("%s: got %v, want kind %q", c.reason, err, c.wantKind)
			}

			if order.ClusterConfig.GardenerConfig.PodsCidr == nil {
				t.Errorf("%s: the order itself was changed", c.reason)
			}
		})
	}
}
