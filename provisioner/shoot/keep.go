package shoot

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/internal/versions"
)

// Keep copies those fields of the current Shoot that a change of the order must not undo: versions that Gardener has raised (it
// rejects lower versions), the hibernation, the Seed after a control plane migration, and other owners' entries in lists and
// configurations that an apply replaces as a whole. All other fields that the Provisioner does not write are preserved by
// server-side apply.
func (o *Objects) Keep(present *gardencorev1beta1.Shoot) {
	if o.adopted {
		o.keepAdopted(present)
	}

	wanted, had := &o.Shoot.Spec, &present.Spec
	wanted.Kubernetes.Version = versions.Newer(wanted.Kubernetes.Version, had.Kubernetes.Version)

	for i := range wanted.Provider.Workers {
		worker := &wanted.Provider.Workers[i]
		for _, before := range had.Provider.Workers {
			if before.Name == worker.Name {
				keepImage(worker.Machine.Image, before.Machine.Image)
				o.keepWorkerConfig(worker, before)
			}
		}
	}

	if had.Hibernation != nil && had.Hibernation.Enabled != nil {
		wanted.Hibernation = &gardencorev1beta1.Hibernation{Enabled: had.Hibernation.Enabled}
	}

	// If the order names no Seed, the apply omits the field and the Shoot keeps its Seed.
	if wanted.SeedName != nil && had.SeedName != nil {
		wanted.SeedName = had.SeedName
	}

	keepConfig(wanted.Provider.InfrastructureConfig, had.Provider.InfrastructureConfig)
	keepConfig(wanted.Provider.ControlPlaneConfig, had.Provider.ControlPlaneConfig)
	keepExtensions(wanted, had)

	wanted.Resources = withOthers(wanted.Resources, had.Resources,
		func(resource gardencorev1beta1.NamedResourceReference) string { return resource.Name })
	wanted.AccessRestrictions = withOthers(wanted.AccessRestrictions, had.AccessRestrictions,
		func(restriction gardencorev1beta1.AccessRestrictionWithOptions) string { return restriction.Name })
}

// keepExtensions copies the existing extensions with their configurations. The order and the settings determine only whether the
// networking filter is enabled, and the target of audit logs. A Shoot keeps an extension that was removed from the settings,
// because users of the cluster may depend on it.
func keepExtensions(wanted, had *gardencorev1beta1.ShootSpec) {
	for i := range wanted.Extensions {
		extension := &wanted.Extensions[i]

		at := slices.IndexFunc(had.Extensions, func(e gardencorev1beta1.Extension) bool { return e.Type == extension.Type })
		if at < 0 || extension.Type == ExtensionAuditLog {
			continue
		}

		disabled := extension.Disabled
		*extension = *had.Extensions[at].DeepCopy()

		if extension.Type == ExtensionNetworkingFilter {
			extension.Disabled = disabled
		}
	}

	wanted.Extensions = withOthers(wanted.Extensions, had.Extensions,
		func(extension gardencorev1beta1.Extension) string { return extension.Type })
}

// withOthers returns the wanted items, followed by the existing items whose names are not among them.
func withOthers[T any](wanted, had []T, name func(T) string) []T {
	for _, item := range had {
		if !slices.ContainsFunc(wanted, func(other T) bool { return name(other) == name(item) }) {
			wanted = append(wanted, item)
		}
	}

	return wanted
}

// keepImage keeps a machine image version that Gardener has raised, unless the order changes the image. If the order names another image
// without a version, the version becomes empty, for which Gardener chooses the newest one. If it were omitted, an apply would keep the
// version of the former image, which Gardener or its defaults have set.
func keepImage(wanted, had *gardencorev1beta1.ShootMachineImage) {
	switch {
	case wanted == nil || had == nil:
	case wanted.Name != had.Name && wanted.Version == nil:
		wanted.Version = new("")
	case wanted.Name == had.Name && wanted.Version != nil && had.Version != nil:
		wanted.Version = new(versions.Newer(*wanted.Version, *had.Version))
	}
}

// keepWorkerConfig merges the provider configuration of a pool into the current one. If the order turns off the requirement of tokens, it has
// no configuration: the current one then stays without the requirement. If it were omitted, an apply would remove it with the fields of other
// owners, or keep it with the requirement if another manager owns it too.
func (o *Objects) keepWorkerConfig(wanted *gardencorev1beta1.Worker, had gardencorev1beta1.Worker) {
	if wanted.ProviderConfig != nil || had.ProviderConfig == nil || !o.withoutTokens {
		keepConfig(wanted.ProviderConfig, had.ProviderConfig)

		return
	}

	var config fields
	if json.Unmarshal(had.ProviderConfig.Raw, &config) != nil {
		return
	}

	delete(config, tokensField)

	if text, err := json.Marshal(config); err == nil {
		wanted.ProviderConfig = &runtime.RawExtension{Raw: text}
	}
}

// gatewayField is the only field of a provider configuration that keepConfig removes when the order omits it.
const gatewayField = "natGateway"

// keepConfig merges the wanted configuration into the current one, which may contain fields of other owners. Server-side apply
// does not merge provider configurations, because they are opaque to the API server.
func keepConfig(wanted, had *runtime.RawExtension) {
	if wanted == nil || had == nil {
		return
	}

	var ours, theirs any
	if json.Unmarshal(wanted.Raw, &ours) != nil || json.Unmarshal(had.Raw, &theirs) != nil {
		return // An unreadable configuration is replaced.
	}

	if text, err := json.Marshal(overlay(theirs, ours)); err == nil {
		wanted.Raw = text
	}
}

// overlay merges the wanted value into the existing one. It merges objects by key, and lists of objects by their "name" field;
// list items that are not wanted are dropped. If the values are not both objects or both such lists, it returns the wanted value.
func overlay(had, wanted any) any {
	switch wanted := wanted.(type) {
	case map[string]any:
		before, _ := had.(map[string]any)

		merged := map[string]any{}
		maps.Copy(merged, before)
		delete(merged, gatewayField)

		for key, value := range wanted {
			merged[key] = overlay(before[key], value)
		}

		return merged
	case []any:
		before, _ := had.([]any)
		merged := make([]any, 0, len(wanted))

		for _, item := range wanted {
			merged = append(merged, overlay(sameName(before, item), item))
		}

		return merged
	default:
		return wanted
	}
}

// sameName returns the object in the list whose "name" field equals the item's, or nil.
func sameName(list []any, item any) any {
	nameOf := func(value any) any {
		object, _ := value.(map[string]any)

		return object["name"]
	}

	at := slices.IndexFunc(list, func(other any) bool { return nameOf(item) != nil && nameOf(other) == nameOf(item) })
	if at < 0 {
		return nil
	}

	return list[at]
}

// Reader reads Shoots by name. gardener.Client implements it. Errors come from package failure; a missing Shoot is
// failure.NotFound.
type Reader interface {
	Get(ctx context.Context, name string) (*gardencorev1beta1.Shoot, error)
}

// ToSleep reports whether the spec of the Shoot requests hibernation.
func ToSleep(shoot *gardencorev1beta1.Shoot) bool {
	hibernation := shoot.Spec.Hibernation

	return hibernation != nil && ptr.Deref(hibernation.Enabled, false)
}

// Asleep reports whether hibernation has stopped the API server of the cluster, or will stop it soon.
func Asleep(shoot *gardencorev1beta1.Shoot) bool { return shoot.Status.IsHibernated || ToSleep(shoot) }
