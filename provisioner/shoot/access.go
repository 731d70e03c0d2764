package shoot

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

const (
	// Who may operate the cluster's nodes and add-ons: see Gardener's access restrictions.
	euAccessOnly   = "eu-access-only"
	euAccessNodes  = "support.gardener.cloud/eu-access-for-cluster-nodes"
	euAccessAddons = "support.gardener.cloud/eu-access-for-cluster-addons"

	// Seeds of this region are reserved; a Shoot has to tolerate that to get one.
	assuredRegion   = "me-central2"
	assuredWorkload = "ksa-assured-workload"
)

func accessRestrictionsOf(config *spec.Cluster) []gardencorev1beta1.AccessRestrictionWithOptions {
	if !valueOr(config.EUAccess, false) {
		return nil
	}

	return []gardencorev1beta1.AccessRestrictionWithOptions{{
		AccessRestriction: gardencorev1beta1.AccessRestriction{Name: euAccessOnly},
		Options:           map[string]string{euAccessNodes: "true", euAccessAddons: "true"},
	}}
}

func tolerationsOf(config *spec.Cluster) []gardencorev1beta1.Toleration {
	if config.Region != assuredRegion {
		return nil
	}

	return []gardencorev1beta1.Toleration{{Key: assuredWorkload}}
}
