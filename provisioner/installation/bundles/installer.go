package bundles

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

// kubeconfigKey is the Secret key under which the kubeconfig is stored.
const kubeconfigKey = "kubeconfig"

// Direct is the Installer that works without a bundle provisioner. It remains in charge of each cluster on which it has installed
// something. installer.Installer implements it.
type Direct interface {
	installation.Installer

	// Installed reports whether the Installer has installed something on the cluster.
	Installed(ctx context.Context, target installation.Target) (bool, error)
}

// Uploader sends content to the bundle provisioner. Uploads implements it.
type Uploader interface {
	// Upload sends an archive as the content of a Bundle. Callers may repeat it. waiting is the reason why the content is not
	// accepted yet, or "" if it is accepted.
	Upload(ctx context.Context, bundle string, archive []byte) (waiting string, err error)
}

// Options configure an Installer.
type Options struct {
	// Hub returns a client for the cluster of the bundle provisioner.
	Hub func() client.Client
	// Namespace is the namespace of the bundle provisioner.
	Namespace string
	// Class is the provisioner class of BundleDeployments and Bundles. Its format is plain+v0.
	Class     string
	Uploads   Uploader
	Manifests installation.Manifests
	Direct    Direct
	// Kubeconfigs issues the kubeconfigs for the bundle provisioner. Validity is their lifetime.
	Kubeconfigs Kubeconfigs
	Validity    time.Duration
	// DeletionTimeout limits how long the removal of a component waits for its objects on the runtime's cluster to be deleted.
	DeletionTimeout time.Duration
	Now             func() time.Time
}

// Installer implements installation.Installer. It has no state between calls and is safe for concurrent use.
type Installer struct{ Options }

var _ installation.Installer = (*Installer)(nil)

// New returns an Installer.
func New(options Options) *Installer { return &Installer{options} }

// Install implements installation.Installer. It writes the BundleDeployments, uploads missing content, and reports the state of the first
// component that is not installed yet.
func (i *Installer) Install(ctx context.Context, target installation.Target, plan installation.Plan) (installation.Progress, error) {
	direct, err := i.Direct.Installed(ctx, target)
	if err != nil {
		return installation.Progress{}, err
	}

	if direct {
		return i.Direct.Install(ctx, target, plan)
	}

	if err := plan.CheckExternal(func(component installation.Component) ([]installation.ManifestFile, error) {
		return i.Manifests.Manifests(ctx, component.Source)
	}); err != nil {
		return installation.Progress{}, err
	}

	key, err := i.provideKubeconfig(ctx, target)
	if err != nil {
		return installation.Progress{}, err
	}

	parts, err := i.parts(ctx, plan, key)
	if err != nil {
		return installation.Progress{}, err
	}

	found, err := i.find(ctx, target.RuntimeID)
	if err != nil {
		return installation.Progress{}, err
	}

	for index := range parts {
		if waiting, err := i.write(ctx, target, plan.Version, parts, index, found); err != nil || waiting != "" {
			return installation.Progress{Message: waiting}, err
		}
	}

	sent, err := i.sendContent(ctx, parts, key, target.RuntimeID, found)
	if err != nil {
		return installation.Progress{}, err
	}

	if waiting, err := found.progress(target.RuntimeID, parts, sent); err != nil || waiting != "" {
		return installation.Progress{Message: waiting}, err
	}

	return i.prune(ctx, target.RuntimeID, plan, parts, found)
}

// write creates or updates the BundleDeployment of a part. waiting is "" unless an old BundleDeployment must be removed first.
func (i *Installer) write(ctx context.Context, target installation.Target, release string, parts []part, index int,
	found *objects,
) (waiting string, err error) {
	wanted, err := i.deployment(target, release, parts, index)
	if err != nil {
		return "", err
	}

	present := found.deployments[wanted.Name]

	switch {
	case present == nil:
		err = i.Hub().Create(ctx, wanted)
	case !present.DeletionTimestamp.IsZero():
		return parts[index].where + ": its previous installation is being removed", nil
	case sameSpec(present, wanted):
		return "", nil
	default:
		changed := present.DeepCopy()
		changed.Spec, changed.Labels, changed.Annotations = wanted.Spec, wanted.Labels, wanted.Annotations
		err, wanted = i.Hub().Update(ctx, changed), changed
	}

	if err != nil {
		return "", explain(err, parts[index].where)
	}

	found.deployments[wanted.Name] = wanted

	return "", nil
}

// deployment returns the BundleDeployment for parts[index], which depends on the BundleDeployment of the previous part.
func (i *Installer) deployment(target installation.Target, release string, parts []part, index int) (*v1alpha1.BundleDeployment, error) {
	part := parts[index]

	config, err := json.Marshal(map[string]string{"operation": target.OperationID})
	if err != nil {
		return nil, fmt.Errorf("encoding the operation of %s: %w", part.where, err)
	}

	deployment := &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Name:   deploymentName(target.RuntimeID, part.name),
			Labels: map[string]string{LabelRuntime: target.RuntimeID, LabelComponent: part.name, labelManagedBy: managedBy},
			Annotations: map[string]string{
				annotationRelease: release, annotationShoot: target.ShootName,
			},
		},
		Spec: v1alpha1.BundleDeploymentSpec{
			ProvisionerClassName: i.Class,
			Template: v1alpha1.BundleTemplate{
				Metadata: metav1.ObjectMeta{Labels: map[string]string{LabelRuntime: target.RuntimeID, labelContent: part.content, labelManagedBy: managedBy}},
				Spec: v1alpha1.TemplateSpec{
					ProvisionerClassName: i.Class,
					Source:               v1alpha1.BundleSource{Type: v1alpha1.SourceTypeUpload, Upload: &v1alpha1.UploadSource{}},
				},
			},
			// The plain+v0 format ignores the configuration. Changing this value increases the generation, which makes the bundle
			// provisioner check the cluster again.
			Config:           runtime.RawExtension{Raw: config},
			InstallNamespace: part.namespace,
			Target: &v1alpha1.Target{KubeconfigSecretRef: v1alpha1.SecretKeyReference{
				Name: secretName(target.RuntimeID), Key: kubeconfigKey,
			}},
			DeletionTimeout: &metav1.Duration{Duration: i.DeletionTimeout},
		},
	}

	if index > 0 {
		deployment.Spec.DependsOn = []v1alpha1.Dependency{{Name: deploymentName(target.RuntimeID, parts[index-1].name)}}
	}

	return deployment, nil
}

// sameSpec reports whether the BundleDeployment on the hub has the wanted spec and release.
func sameSpec(present, wanted *v1alpha1.BundleDeployment) bool {
	if present.Annotations[annotationRelease] != wanted.Annotations[annotationRelease] {
		return false
	}

	one, other := present.Spec.DeepCopy(), wanted.Spec.DeepCopy()
	config, wantedConfig := one.Config.Raw, other.Config.Raw
	one.Config, other.Config = runtime.RawExtension{}, runtime.RawExtension{}

	return string(config) == string(wantedConfig) && equality.Semantic.DeepEqual(one, other)
}

// sendContent uploads content to the Bundles that wait for it. waiting maps the name of each uploaded part to the reason why its
// content has not been accepted yet, or to "" if the content has been accepted.
func (i *Installer) sendContent(ctx context.Context, parts []part, key []byte, runtimeID string, found *objects) (waiting map[string]string, err error) {
	waiting = map[string]string{}

	for _, part := range parts {
		bundle := found.bundle(deploymentName(runtimeID, part.name), part.content)
		if bundle == nil || !needsContent(bundle) {
			continue
		}

		packed, err := part.pack(ctx, key)
		if err != nil {
			return nil, err
		}

		text, err := i.Uploads.Upload(ctx, bundle.Name, packed)
		if failure.Is(err, failure.Conflict) {
			err = i.checkConflict(ctx, runtimeID, bundle.Name, err)
		}

		if err != nil {
			known := failure.Of(err)

			return nil, failure.Wrap(known.Kind, err, "%s: %s", part.where, known.Text).WithReason(known.Reason, known.Component)
		}

		waiting[part.name] = text
	}

	return waiting, nil
}

// checkConflict returns nil if another replica of the Provisioner has uploaded the same content or replaced the Bundle in the meantime.
// Otherwise it returns the error of the upload.
func (i *Installer) checkConflict(ctx context.Context, runtimeID, name string, refused error) error {
	found, err := i.find(ctx, runtimeID) // the role permits only this way of reading Bundles
	if err != nil {
		return err
	}

	index := slices.IndexFunc(found.bundles, func(bundle v1alpha1.Bundle) bool { return bundle.Name == name })

	switch {
	case index < 0: // the Bundle was replaced, and the next call finds its successor
		return nil
	case found.bundles[index].Spec.Source.Type == v1alpha1.SourceTypeUpload && !needsContent(&found.bundles[index]):
		return nil
	default:
		return refused
	}
}

// needsContent reports whether a Bundle may still be waiting for its upload.
func needsContent(bundle *v1alpha1.Bundle) bool {
	return bundle.DeletionTimestamp.IsZero() && slices.Contains([]v1alpha1.Phase{"", v1alpha1.PhasePending}, bundle.Status.Phase)
}
