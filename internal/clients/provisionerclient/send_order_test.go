package provisionerclient

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// provisioner is a fake Provisioner. It returns the errors in answers one after the other, and records the pod range of each
// order, or "none".
type provisioner struct {
	answers []error
	ranges  []string
}

func (p *provisioner) send(order *wire.ProvisionRuntimeInput) (Operation, error) {
	answer := p.answers[len(p.ranges)]

	ranges := "none"
	if pods := order.ClusterConfig.GardenerConfig.PodsCidr; pods != nil {
		ranges = *pods
	}

	p.ranges = append(p.ranges, ranges)

	return Operation{ID: "operation-1"}, answer
}

func TestSendOrder(t *testing.T) {
	notUnderstood := failure.Wrap(failure.Permanent, ErrNotUnderstood, "podsCidr unknown field")
	away := failure.New(failure.Transient, "no response")

	cases := map[string]struct {
		reason     string
		parameters string
		answers    []error
		want       []string
		wantKind   failure.Kind
	}{
		"ours": {
			reason: "the ranges are sent to a Provisioner that supports them", answers: []error{nil}, want: []string{"10.96.0.0/13"},
		},
		"Kyma Provisioner": {
			reason:  "Gardener chooses the ranges if the Provisioner does not know the fields and the user set no ranges",
			answers: []error{notUnderstood, nil}, want: []string{"10.96.0.0/13", "none"},
		},
		"chosen": {
			reason:     "ranges chosen by the user are not dropped silently",
			parameters: `{"networking":{"nodes":"10.250.0.0/16","services":"10.104.0.0/13"}}`,
			answers:    []error{notUnderstood}, want: []string{"10.96.0.0/13"}, wantKind: failure.Permanent,
		},
		"never": {
			reason:     "an order that fails even without ranges is rejected",
			parameters: `{"region":"eu-west-1"}`,
			answers:    []error{notUnderstood, notUnderstood}, want: []string{"10.96.0.0/13", "none"}, wantKind: failure.Permanent,
		},
		"away": {
			reason: "an order without a response is not repeated without ranges", answers: []error{away}, want: []string{"10.96.0.0/13"},
			wantKind: failure.Transient,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ordered := instance("gcp", "region-1-a")
			ordered.Request.Parameters = json.RawMessage(c.parameters)

			order, err := newOrder(ordered, "")
			if err != nil {
				t.Fatal(err)
			}

			asked := &provisioner{answers: c.answers}
			_, err = sendOrder(order, ordered.Request.Parameters, asked.send)

			if diff := cmp.Diff(c.want, asked.ranges); diff != "" {
				t.Errorf("%s: sent ranges: -want +got\n%s", c.reason, diff)
			}

			if (err != nil) != (c.wantKind != "") || err != nil && failure.KindOf(err) != c.wantKind {
				t.Errorf("%s: got %v, want kind %q", c.reason, err, c.wantKind)
			}

			if order.ClusterConfig.GardenerConfig.PodsCidr == nil {
				t.Errorf("%s: the caller's order was changed", c.reason)
			}
		})
	}
}
