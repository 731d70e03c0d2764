package broker

import (
	"strings"

	"github.com/pivotal-cf/brokerapi/v10/domain"
)

// requester is who orders an instance.
type requester struct {
	// tenant pays, subaccount is the part of it that orders.
	tenant, subaccount string
	// user administers the runtime unless the parameters name others. That of a context is in lower case, as tokens have it.
	user string
	// instanceName is the platform's name of the instance, or empty.
	instanceName string
}

// newRequester finds out who orders. Platforms that name no account in the context are told apart by their organizations or
// clusters. Strict insists on the two GUIDs in any case.
func newRequester(details domain.ProvisionDetails, originator string, strict bool) (requester, error) {
	context := &body{within: "context."}
	if err := decode(details.RawContext, &context.fields); err != nil {
		return requester{}, invalid("context has to be an object.")
	}

	account, cluster := context.label("globalaccount_id"), context.label("clusterid")
	found := requester{
		tenant:       firstOf(account, details.OrganizationGUID, cluster),
		subaccount:   firstOf(context.label("subaccount_id"), details.SpaceGUID, context.label("namespace")),
		user:         firstOf(strings.ToLower(context.text("user_id")), originator),
		instanceName: context.text("instance_name"),
	}

	if context.err != nil {
		return requester{}, context.err
	}

	if strict || account == "" && cluster == "" {
		switch {
		case details.OrganizationGUID == "":
			return requester{}, invalid("organization_guid is missing.")
		case details.SpaceGUID == "":
			return requester{}, invalid("space_guid is missing.")
		}
	}

	return found, nil
}

// firstOf returns the first text that is not empty.
func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}

	return ""
}
