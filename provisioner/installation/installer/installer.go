package installer

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/applier"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

// Manifests provides the manifests of components. releases.Catalog implements it. Errors come from package failure.
type Manifests interface {
	// Manifests returns the files for Component.Source. It must return the same content on every call.
	Manifests(ctx context.Context, source string) ([]installation.ManifestFile, error)
}

// Options configure an Installer.
type Options struct {
	Manifests Manifests
	// Budget is the time after which a call starts no further component; 0 means applier.DefaultBudget.
	Budget time.Duration
	// Now is the clock for the budget.
	Now func() time.Time
}

// Installer implements installation.Installer. It has no state between calls and is safe for concurrent use.
type Installer struct {
	manifests Manifests
	applier   *applier.Applier
}

var _ installation.Installer = (*Installer)(nil)

// New returns an Installer.
func New(options Options) *Installer {
	return &Installer{options.Manifests, applier.New(applier.Options{Budget: options.Budget, Now: options.Now})}
}

// Install implements installation.Installer.
func (i *Installer) Install(ctx context.Context, cluster *rest.Config, runtimeID string, plan installation.Plan) (installation.Progress, error) {
	connected, err := connect(cluster)
	if err != nil {
		return installation.Progress{}, err
	}

	progress, err := i.applier.Apply(ctx, connected, applier.Runtime(runtimeID), i.content(plan))

	return installation.Progress(progress), err
}

// Uninstall implements installation.Installer.
func (i *Installer) Uninstall(ctx context.Context, cluster *rest.Config, runtimeID string) (installation.Progress, error) {
	connected, err := connect(cluster)
	if err != nil {
		return installation.Progress{}, err
	}

	progress, err := i.applier.Remove(ctx, connected, applier.Runtime(runtimeID))

	return installation.Progress(progress), err
}

func connect(cluster *rest.Config) (*applier.Cluster, error) {
	connected, err := applier.Connect(cluster)
	if err != nil {
		return nil, failure.Wrap(failure.Internal, err, "creating a client for the cluster failed")
	}

	return connected, nil
}

// content returns the content of a plan.
func (i *Installer) content(plan installation.Plan) applier.Content {
	content := applier.Content{
		Check: func(ctx context.Context) error {
			return plan.CheckExternal(func(component installation.Component) ([]installation.ManifestFile, error) {
				return i.manifests.Manifests(ctx, component.Source)
			})
		},
		Installed:   fmt.Sprintf("release %s is installed: %d components", plan.Version, len(plan.Components)),
		AwaitHealth: true,
	}

	for _, component := range plan.Components {
		content.Parts = append(content.Parts, applier.Part{
			Name: component.Name, Namespace: component.Namespace, Source: source{i.manifests, component},
			Mask: func(text string) string { return mask(text, component) },
		})
	}

	return content
}

// source provides the objects of a component.
type source struct {
	manifests Manifests
	component installation.Component
}

// Digest implements applier.Source. It covers the manifests and the values. It needs no key even though values may be secret: anyone who
// can read the inventory can also read the Secrets with the values.
func (s source) Digest(ctx context.Context) (string, error) {
	files, err := s.manifests.Manifests(ctx, s.component.Source)
	if err != nil {
		return "", err
	}

	content, err := json.Marshal(struct {
		Namespace string                      `json:"namespace"`
		Values    map[string]string           `json:"values"`
		Files     []installation.ManifestFile `json:"files"`
	}{s.component.Namespace, s.component.Values, files})
	if err != nil {
		return "", fmt.Errorf("computing the digest of component %s: %w", s.component.Name, err)
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

// mask replaces the component's secret values in a text. It also finds them quoted, as in Go and JSON, and in base64, as in
// Secrets.
func mask(text string, component installation.Component) string {
	for _, key := range component.SecretKeys {
		value := component.Values[key]
		// An empty value would match between all characters of the text.
		if value == "" {
			continue
		}

		quoted := strings.Trim(strconv.Quote(value), `"`)
		encoded := base64.StdEncoding.EncodeToString([]byte(value))
		text = strings.NewReplacer(value, secret.Mask, quoted, secret.Mask, encoded, secret.Mask).Replace(text)
	}

	return text
}
