package fakegarden

import (
	"strings"

	"github.com/Masterminds/semver/v3"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validate returns the problems in a Shoot or its change that can be found without reading other objects. Gardener does this in
// its API server's strategy, before the validating plugins run. A Shoot with such problems is therefore rejected before allow is
// called.
func validate(old, shoot *gardencorev1beta1.Shoot) field.ErrorList {
	var found problems
	if old.UID != "" {
		validateUpdate(&found, old, shoot)
	} else {
		path := field.NewPath("metadata", "name")
		validateLabel(&found, shoot.Name, path)
		found.add(strings.Contains(shoot.Name, "--"), field.Invalid(path, shoot.Name, "name may not contain two consecutive hyphens"))
	}
	validateSpec(&found, &shoot.Spec, field.NewPath("spec"))
	return field.ErrorList(found)
}

// validateLabel checks a name that becomes part of a DNS name: lower-case letters, digits and hyphens, at most 63 characters.
func validateLabel(found *problems, name string, path *field.Path) {
	for _, problem := range validation.NameIsDNSLabel(name, false) {
		found.add(true, field.Invalid(path, name, problem))
	}
}

// validateSpec finds missing and contradictory fields. A Shoot without worker pools has no nodes, so it needs neither credentials
// nor a network. Every update is validated completely, so the rules also apply to unchanged fields.
func validateSpec(found *problems, spec *gardencorev1beta1.ShootSpec, path *field.Path) {
	validateDeprecated(found, spec, path)
	found.add(spec.CloudProfile == nil || spec.CloudProfile.Name == "",
		field.Required(path.Child("cloudProfile", "name"), "must specify a cloud profile"))
	found.add(spec.Provider.Type == "", field.Required(path.Child("provider", "type"), "must specify a provider type"))
	found.add(spec.Kubernetes.Version == "", field.Required(path.Child("kubernetes", "version"), "kubernetes version must not be empty"))
	found.add(spec.Region == "", field.Required(path.Child("region"), "must specify a region"))
	if len(spec.Provider.Workers) > 0 {
		secret, credentials, at := present(secretBindingName(spec)), present(spec.CredentialsBindingName), path.Child("secretBindingName")
		found.add(!secret && !credentials, field.Required(at, "must be set when credentialsBindingName is not"))
		found.add(secret && credentials, field.Forbidden(at, "is incompatible with credentialsBindingName"))
		found.add(spec.Networking == nil || !present(spec.Networking.Type),
			field.Required(path.Child("networking", "type"), "networking type must be provided"))
	}
	purposes := sets.New(gardencorev1beta1.ShootPurposeDevelopment, gardencorev1beta1.ShootPurposeEvaluation,
		gardencorev1beta1.ShootPurposeProduction, gardencorev1beta1.ShootPurposeTesting)
	if spec.Purpose != nil {
		found.add(!purposes.Has(*spec.Purpose), field.NotSupported(path.Child("purpose"), *spec.Purpose, sets.List(purposes)))
	}
	for i := range spec.Provider.Workers {
		validateWorker(found, &spec.Provider.Workers[i], path.Child("provider", "workers").Index(i))
	}
}

// validateWorker checks a worker pool. A pool may scale to zero nodes, but its maximum must not be below its minimum. The pool's
// name becomes part of the names of its nodes.
func validateWorker(found *problems, worker *gardencorev1beta1.Worker, path *field.Path) {
	validateLabel(found, worker.Name, path.Child("name"))
	found.add(worker.Machine.Type == "", field.Required(path.Child("machine", "type"), "must specify a machine type"))
	minimum, maximum := path.Child("minimum"), path.Child("maximum")
	found.add(worker.Minimum < 0, field.Invalid(minimum, worker.Minimum, "minimum value must not be negative"))
	found.add(worker.Maximum < 0, field.Invalid(maximum, worker.Maximum, "maximum value must not be negative"))
	found.add(worker.Maximum < worker.Minimum, field.Forbidden(maximum, "maximum value must not be less than minimum value"))
}

// validateUpdate finds changes of immutable fields. A CredentialsBinding may replace a deprecated SecretBinding. The address
// ranges of Pods and Services may be set later but not changed, because a running cluster cannot change its addresses.
func validateUpdate(found *problems, old, shoot *gardencorev1beta1.Shoot) {
	path := field.NewPath("spec")
	before, after := &old.Spec, &shoot.Spec
	if shoot.DeletionTimestamp != nil && !apiequality.Semantic.DeepEqual(before, after) {
		found.add(true, field.Forbidden(path, "cannot update shoot spec if deletion timestamp is set"))
		return
	}
	immutable := func(before, after any, at ...string) {
		found.join(validation.ValidateImmutableField(after, before, path.Child(at[0], at[1:]...)))
	}
	immutable(before.Region, after.Region, "region")
	immutable(before.Provider.Type, after.Provider.Type, "provider", "type")
	found.add(before.CredentialsBindingName != nil && !present(after.CredentialsBindingName),
		field.Forbidden(path.Child("credentialsBindingName"), "the field cannot be unset"))
	bound, binds := secretBindingName(before), secretBindingName(after)
	if migrates := present(bound) && binds == nil && present(after.CredentialsBindingName); !migrates {
		immutable(bound, binds, "secretBindingName")
	}
	validateVersionUpdate(found, before.Kubernetes.Version, after.Kubernetes.Version, path.Child("kubernetes", "version"))
	if before.Networking == nil {
		return
	}
	if after.Networking == nil {
		found.add(true, field.Forbidden(path.Child("networking"), "networking cannot be set to nil if it's already set"))
		return
	}
	immutable(before.Networking.Type, after.Networking.Type, "networking", "type")
	if before.Networking.Pods != nil {
		immutable(before.Networking.Pods, after.Networking.Pods, "networking", "pods")
	}
	if before.Networking.Services != nil {
		immutable(before.Networking.Services, after.Networking.Services, "networking", "services")
	}
}

// validateVersionUpdate rejects downgrades and skipped minor versions. Kubernetes supports upgrades by one minor version at a
// time, because it limits the version difference between control plane and nodes. validateOffer checks whether the provider
// offers the version.
func validateVersionUpdate(found *problems, before, after string, path *field.Path) {
	old, err := semver.NewVersion(before)
	if err != nil {
		return // never happens: a stored version is valid
	}
	wanted, err := semver.NewVersion(after)
	if err != nil {
		found.add(true, field.Invalid(path, after, err.Error()))
		return
	}
	skipped := old.IncMinor().IncMinor()
	found.add(wanted.LessThan(old), field.Forbidden(path, "kubernetes version downgrade is not supported"))
	found.add(!wanted.LessThan(&skipped), field.Forbidden(path, "kubernetes version upgrade cannot skip a minor version"))
}

// present reports whether an optional field has a value. Like Gardener, it treats an empty string as a missing value.
func present(value *string) bool { return value != nil && *value != "" }
