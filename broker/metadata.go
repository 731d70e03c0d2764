package broker

import (
	"net/url"
	"strings"

	"github.com/pivotal-cf/brokerapi/v10/domain"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// metadata is what platforms show of an instance besides its dashboard.
func (a *api) metadata(instance environment.Instance) domain.InstanceMetadata {
	labels := map[string]string{"Name": instance.Name}

	if a.PublicURL != "" && instance.Request.Cluster.Own == nil {
		labels["KubeconfigURL"] = strings.TrimSuffix(a.PublicURL, "/") + "/kubeconfig/" + url.PathEscape(instance.ID)
	}

	return domain.InstanceMetadata{Labels: labels}
}
