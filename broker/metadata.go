package broker

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/pivotal-cf/brokerapi/v10/domain"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// metadata is what platforms show of an instance besides its dashboard.
func (a *api) metadata(instance environment.Instance) domain.InstanceMetadata {
	labels := map[string]string{"Name": instance.Name}

	if a.PublicURL != "" && instance.Request.Cluster.Own == nil && !instance.Suspended && !instance.Expired() {
		labels["KubeconfigURL"] = strings.TrimSuffix(a.PublicURL, "/") + "/kubeconfig/" + url.PathEscape(instance.ID)
	}

	if text := expiration(instance, a.Clock.Now()); text != "" {
		labels[expirationLabel(instance.PlanName)] = text
	}

	return domain.InstanceMetadata{Labels: labels}
}

// expirationLabel is where users of the two plans without charge have always read how long they last.
func expirationLabel(plan string) string {
	switch plan {
	case "trial":
		return "Trial account expiration details"
	case "free":
		return "Free plan expiration details"
	default:
		return "Expiration details"
	}
}

// expiration tells how long an instance lasts, or nothing where that is not bounded.
func expiration(instance environment.Instance, now time.Time) string {
	const day = 24 * time.Hour

	switch days := int(instance.ExpiresAt.Sub(now) / day); {
	case instance.Expired():
		return "Your cluster has expired. It is removed, and the instance can only be deleted."
	case instance.ExpiresAt.IsZero():
		return ""
	case !instance.ExpiresAt.After(now.Add(day)):
		return "Your cluster expires within a day."
	case days == 1:
		return "Your cluster expires in 1 day."
	default:
		return fmt.Sprintf("Your cluster expires in %d days.", days)
	}
}
