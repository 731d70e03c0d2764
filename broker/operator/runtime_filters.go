package operator

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// kindFilter is the parameter that selects instances by the kind of their newest operation.
const kindFilter = "kind"

// columnFilters are the parameters that addColumns reads. Lists of leftovers do not have them.
func columnFilters() []string {
	return []string{
		"provider", "shoot", "runtime", "subscription_account", "shared_with", "maintenance_version", kindFilter, "expired", "expires_before", "since", "until",
	}
}

// addColumns adds the parameters of columnFilters to the filter.
func addColumns(query operatorserver.Query, filter *instances.Filter) error {
	filter.Provider, filter.RuntimeID = query.Get("provider"), query.Get("runtime")
	filter.SubscriptionAccountID, filter.MaintenanceVersion = query.Get("subscription_account"), query.Get("maintenance_version")

	if shoot := query.Get("shoot"); shoot != "" {
		filter.ShootNames = []string{shoot}
	}

	if platform := query.Get("shared_with"); platform != "" {
		if wrong := validation.IsDNS1123Label(platform); len(wrong) > 0 {
			return operatorserver.Invalid("shared_with must be the name of a platform.")
		}

		filter.SharedWith = platform
	}

	if kind := query.Get(kindFilter); kind != "" {
		kinds := environment.Kinds()
		if !slices.Contains(kinds, kind) {
			return operatorserver.Invalid(fmt.Sprintf("The kind %q is unknown. Use one of: %s.", kind, strings.Join(kinds, ", ")))
		}

		filter.Kinds = []string{kind}
	}

	var err error
	if filter.Expired, err = query.Bool("expired"); err != nil {
		return err //nolint:wrapcheck // a refusal
	}

	if filter.ExpiresBefore, err = query.Time("expires_before"); err != nil {
		return err //nolint:wrapcheck // a refusal
	}

	if filter.Since, err = query.Time("since"); err != nil {
		return err //nolint:wrapcheck // a refusal
	}

	filter.Until, err = query.Time("until")

	return err //nolint:wrapcheck // a refusal
}
