package catalog_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/broker/catalog"
)

// TestRequire checks that another part of the service can reject the plans of a reload.
func TestRequire(t *testing.T) {
	t.Parallel()

	offer, err := catalog.Load(shipped(t, nil), options())
	if err != nil {
		t.Fatal(err)
	}

	errTooMany := errors.New("too many plans")
	limit := len(offer.Plans())
	check := func(plans []*catalog.Plan) error {
		if len(plans) > limit {
			return errTooMany
		}

		return nil
	}

	if err := offer.Require(check); err != nil {
		t.Fatalf("the loaded plans pass the check, got %v", err)
	}

	more := shipped(t, map[string]string{
		"plans/more.yaml": strings.NewReplacer("name: aws\n", "name: more\n", "361c511f", "461c511f").Replace(string(file(t, "plans/aws.yaml"))),
		"catalog.yaml":    strings.Replace(string(file(t, "catalog.yaml")), "plans: [", "plans: [more, ", 1),
	})

	if err := offer.Reload(more); !errors.Is(err, errTooMany) || slices.Contains(offer.Names(), "more") {
		t.Errorf("a reload whose plans fail the check changes nothing: plans %v, %v", offer.Names(), err)
	}

	limit++

	if err := offer.Reload(more); err != nil || !slices.Contains(offer.Names(), "more") {
		t.Errorf("a reload whose plans pass the check is used: plans %v, %v", offer.Names(), err)
	}
}
