package installer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/clients/applier"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

// Options configure an Installer.
type Options struct {
	Manifests installation.Manifests
	// Budget is the time after which a call starts no further component; 0 means applier.DefaultBudget.
	Budget time.Duration
	// Now is the clock for the budget.
	Now func() time.Time
}

// Installer implements installation.Installer. It has no state between calls and is safe for concurrent use.
type Installer struct {
	manifests installation.Manifests
	applier   *applier.Applier
}

var _ installation.Installer = (*Installer)(nil)

// New returns an Installer.
func New(options Options) *Installer {
	return &Installer{options.Manifests, applier.New(applier.Options{Budget: options.Budget, Now: options.Now})}
}

// Install implements installation.Installer.
func (i *Installer) Install(ctx context.Context, target installation.Target, plan installation.Plan) (installation.Progress, error) {
	connected, err := connect(target.Cluster)
	if err != nil {
		return installation.Progress{}, err
	}

	progress, err := i.applier.Apply(ctx, connected, applier.Runtime(target.RuntimeID), i.content(plan))

	return installation.Progress{Done: progress.Done, Message: progress.Message}, err
}

// Uninstall implements installation.Installer.
func (i *Installer) Uninstall(ctx context.Context, target installation.Target) (installation.Progress, error) {
	connected, err := connect(target.Cluster)
	if err != nil {
		return installation.Progress{}, err
	}

	progress, err := i.applier.Remove(ctx, connected, applier.Runtime(target.RuntimeID))

	return installation.Progress{Done: progress.Done, Message: progress.Message}, err
}

// Installed reports whether this Installer has installed something on the cluster.
func (i *Installer) Installed(ctx context.Context, target installation.Target) (bool, error) {
	connected, err := connect(target.Cluster)
	if err != nil {
		return false, err
	}

	return i.applier.Installed(ctx, connected, applier.Runtime(target.RuntimeID))
}

func connect(cluster *rest.Config) (*applier.Cluster, error) {
	connected, err := applier.Connect(cluster)
	if err != nil {
		return nil, failure.Wrap(failure.Internal, err, "creating a client for the cluster failed")
	}

	return connected, nil
}

// content converts a plan to the content that the applier installs.
func (i *Installer) content(plan installation.Plan) applier.Content {
	content := applier.Content{
		Check: func(ctx context.Context) error {
			return plan.CheckExternal(func(component installation.Component) ([]installation.ManifestFile, error) {
				return i.manifests.Manifests(ctx, component.Source)
			})
		},
		Installed:   plan.Installed(),
		AwaitHealth: true,
	}

	for _, component := range plan.Components {
		content.Parts = append(content.Parts, applier.Part{
			Name: component.Name, Namespace: component.Namespace, Source: source{i.manifests, component},
			Mask: component.Mask,
		})
	}

	return content
}

// source provides the objects of a component.
type source struct {
	manifests installation.Manifests
	component installation.Component
}

// Digest implements applier.Source. It covers the manifests and the values. It needs no key even though values may be secret: anyone who
// can read the inventory can also read the Secrets with the values.
func (s source) Digest(ctx context.Context) (string, error) {
	files, err := s.manifests.Manifests(ctx, s.component.Source)
	if err != nil {
		return "", err
	}

	content, err := s.component.Inputs(files)
	if err != nil {
		return "", err
	}

	sum := sha256.Sum256(content)

	return hex.EncodeToString(sum[:]), nil
}

// Objects implements applier.Source.
func (s source) Objects(ctx context.Context) ([]*unstructured.Unstructured, error) {
	files, err := s.manifests.Manifests(ctx, s.component.Source)
	if err != nil {
		return nil, err
	}

	return s.component.Objects(files)
}
