package ebctl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

const (
	// maxManifest is the maximum size of a manifest in bytes.
	maxManifest = 1 << 20
	// comparisonDigits is the number of random characters in the name of the temporary BundleDeployment of a comparison. The name
	// starts with at most maxComparedName characters of the compared BundleDeployment's name, so that the whole name fits into a
	// label.
	comparisonDigits = 8
	maxComparedName  = 48
	// comparisonDeletion is the deletion timeout of the temporary BundleDeployment. It is short, because a comparison installs
	// nothing that would have to be removed.
	comparisonDeletion = 10 * time.Second
)

// differentError reports that the compared version would change the cluster.
type differentError struct{ name, summary string }

func (e *differentError) Error() string { return e.name + " differs: " + e.summary }

// bundleComparison is the JSON output of 'bundle diff'.
type bundleComparison struct {
	Deployment string `json:"bundleDeployment"`
	// Differences are the objects that would change.
	Differences []v1alpha1.ObjectDifference `json:"differences"`
	// Omitted is the number of objects that would change, but are not in Differences.
	Omitted int `json:"omitted,omitempty"`
}

// bundleDiff contains the flags of 'bundle diff'.
type bundleDiff struct {
	bundleRun

	source bundleOrder
	file   string
}

func newBundleDiffCommand(session *session, cluster *clusterFlags) *cobra.Command {
	var order bundleDiff

	command := &cobra.Command{
		Use:   "diff NAME [FOLDER]",
		Short: "Show what another version of a BundleDeployment would change on its cluster",
		Long: "Show what another version of a BundleDeployment would change on its cluster.\n\n" +
			"Specify the version with exactly one of a folder, --image, --git, --http, --config-map or --file. The provisioner unpacks " +
			"this version and compares it with the cluster " +
			"through dry runs at the cluster's API server, so defaults do not count as differences. Values of Secrets are masked. If there is no BundleDeployment with this name, " +
			"all objects count as new.\n\n" +
			"The command creates a temporary BundleDeployment with spec.dryRun, and deletes it at the end. You do not need access to the cluster. The exit code is 8 if " +
			"something would change, and 6 if the version cannot be unpacked or installed.",
		Example: "  ebctl bundle diff my-addon ./my-addon\n" +
			"  ebctl bundle diff my-addon --image registry.example.com/my-addon:v2\n" +
			"  ebctl bundle diff my-addon --file bundledeployment.yaml",
		Args: func(command *cobra.Command, args []string) error {
			names := strings.Fields(command.Use)[1:]

			return arguments(names[:max(1, min(len(args), len(names)))]...)(command, args) // the folder is optional
		},
		RunE: func(command *cobra.Command, args []string) error {
			return session.diffBundle(command.Context(), *cluster, args[0], strings.Join(args[1:], ""), order)
		},
	}

	order.credentials.add(command)

	flags := command.Flags()
	order.source.addSources(flags)
	flags.StringVarP(&order.file, "file", "f", "", "a file with the manifest of a BundleDeployment or Bundle")
	flags.StringVar(&order.server, "server", "", "the https address of the content server for a folder (default: the uploadURL of the Bundle)")
	flags.StringVar(&order.class, "class", "", "the provisioner class (default: the class of the BundleDeployment, or "+plainClass+")")
	addBundleClass(flags, &order.bundleClass)
	flags.StringVar(&order.targetSecret, "target-secret", "",
		"a Secret in the provisioner's namespace with the kubeconfig of the cluster (default: the target of the BundleDeployment, or the cluster of the provisioner)")
	flags.Var(timeLimitOf(&order.waiting.limit, defaultWait), "wait-timeout", "maximum duration of the comparison; 0 means no limit")

	if err := command.MarkFlagFilename("file", "yaml", "yml", "json"); err != nil {
		panic(err) // a programming error
	}

	return command
}

// diffBundle compares a version of a BundleDeployment with the cluster, and prints the differences.
func (s *session) diffBundle(ctx context.Context, cluster clusterFlags, name, folder string, order bundleDiff) (err error) {
	var archive *packed

	if folder != "" {
		if archive, err = pack(ctx, folder); err != nil {
			return err
		}
		defer archive.Close()

		// Check the credentials for the upload first, so that nothing is created without them.
		if _, err := s.contentConfig(cluster, order.credentials); err != nil {
			return err
		}
	}

	change, err := order.change(archive)
	if err != nil {
		return err
	}

	client, err := s.bundleClient(cluster)
	if err != nil {
		return err
	}

	wanted, err := client.comparison(ctx, name, order, change)
	if err != nil {
		return err
	}

	created, err := client.create(ctx, wanted)
	if err != nil {
		return fmt.Errorf("creating a BundleDeployment for the comparison: %w", err)
	}
	defer s.endComparison(ctx, client, created)

	if archive != nil {
		if err := s.uploadTo(ctx, cluster, client, created, archive, order.bundleRun); err != nil {
			return err
		}
	}

	found := &v1alpha1.Comparison{}

	if err := s.pollBundle(ctx, name, order.waiting.limit, func(ctx context.Context) (text string, done bool, err error) {
		found, text, err = client.compared(ctx, created.Name, name)

		return text, found != nil, err
	}); err != nil {
		return err
	}

	return s.printComparison(name, *found)
}

// change returns a function that writes the version to compare into a spec: the packed folder in archive, or the version that the
// flags describe if archive is nil.
func (o bundleDiff) change(archive *packed) (func(*v1alpha1.BundleDeploymentSpec), error) {
	chosen := 0

	for _, given := range []bool{archive != nil, o.file != "", o.source.any()} {
		if given {
			chosen++
		}
	}

	if chosen != 1 {
		return nil, usage("specify exactly one of a folder, --image, --git, --http, --config-map or --file")
	}

	if o.file != "" {
		return changeFrom(o.file)
	}

	if archive == nil {
		source, err := o.source.source()

		return func(spec *v1alpha1.BundleDeploymentSpec) { spec.Template.Spec.Source = source }, err
	}

	source := v1alpha1.BundleSource{Type: v1alpha1.SourceTypeUpload, Upload: &v1alpha1.UploadSource{SHA256: archive.digest}}

	return func(spec *v1alpha1.BundleDeploymentSpec) { spec.Template.Spec.Source = source }, nil
}

// any reports whether at least one of the flags that addSources adds is set.
func (o bundleOrder) any() bool {
	return o.image != "" || o.git != "" || o.http != "" || len(o.configMaps) > 0 || o.branch != "" || o.tag != "" || o.commit != "" ||
		o.directory != "" || o.sha256 != ""
}

// changeFrom reads a manifest file, and returns a function that writes the version from the manifest into a spec.
func changeFrom(path string) (func(*v1alpha1.BundleDeploymentSpec), error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, usage("reading the manifest: %w", err)
	}
	defer file.Close()

	text, err := io.ReadAll(io.LimitReader(file, maxManifest+1))

	switch {
	case err != nil:
		return nil, usage("reading the manifest: %w", err)
	case len(text) > maxManifest:
		return nil, usage("the manifest is larger than %d bytes", maxManifest)
	}

	return parseChange(text)
}

// parseChange parses a manifest. For a BundleDeployment, the returned function replaces the whole spec; for a Bundle, it replaces
// only the class and source of the template.
func parseChange(text []byte) (func(*v1alpha1.BundleDeploymentSpec), error) {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(text, &kind); err != nil || kind.APIVersion != v1alpha1.GroupVersion.String() {
		return nil, usage("the manifest must be one object of %s", v1alpha1.GroupVersion)
	}

	switch kind.Kind {
	case v1alpha1.KindBundleDeployment:
		var parsed v1alpha1.BundleDeployment
		if err := yaml.UnmarshalStrict(text, &parsed); err != nil {
			return nil, usage("the manifest is not a valid BundleDeployment: %w", err)
		}

		return func(spec *v1alpha1.BundleDeploymentSpec) { *spec = parsed.Spec }, nil
	case v1alpha1.KindBundle:
		var parsed v1alpha1.Bundle
		if err := yaml.UnmarshalStrict(text, &parsed); err != nil {
			return nil, usage("the manifest is not a valid Bundle: %w", err)
		}

		return func(spec *v1alpha1.BundleDeploymentSpec) {
			spec.Template.Spec = v1alpha1.TemplateSpec{ProvisionerClassName: parsed.Spec.ProvisionerClassName, Source: parsed.Spec.Source}
		}, nil
	default:
		return nil, usage("the manifest is neither a BundleDeployment nor a Bundle")
	}
}

// comparison returns a temporary BundleDeployment for the comparison of a version with the BundleDeployment of the given name.
// change sets the version. Other fields come from that BundleDeployment, if it exists, and from the flags. comparison does not
// send the result to the API server.
func (c bundleClient) comparison(
	ctx context.Context, name string, order bundleDiff, change func(*v1alpha1.BundleDeploymentSpec),
) (*v1alpha1.BundleDeployment, error) {
	temporary := name[:min(len(name), maxComparedName)] + "-diff-" + rand.String(comparisonDigits)
	result := newDeployment(temporary, cmp.Or(order.class, plainClass), order.targetSecret, v1alpha1.BundleSource{})

	present, err := c.deployment(ctx, name)

	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("reading the BundleDeployment %s: %w", name, err)
	case order.class != "" && order.class != present.Spec.ProvisionerClassName:
		return nil, usage("the BundleDeployment %s has the class %s: omit --class", name, present.Spec.ProvisionerClassName)
	default:
		target := result.Spec.Target
		if result.Spec = present.Spec; target != nil {
			result.Spec.Target = target
		}
	}

	setBundleClass(&result.Spec, order.bundleClass)
	change(&result.Spec)

	result.Spec.DependsOn, result.Spec.Suspend, result.Spec.DryRun, result.Spec.DryRunOf = nil, false, true, name
	result.Spec.DeletionTimeout = &metav1.Duration{Duration: comparisonDeletion}

	return result, nil
}

// endComparison deletes the temporary BundleDeployment of a comparison, even after an interrupt. If the deletion fails, it prints
// the error and what the user can do.
func (s *session) endComparison(ctx context.Context, client bundleClient, made v1alpha1.BundleDeployment) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()

	if err := client.api.Delete().Resource(deployments).Name(made.Name).Do(ctx).Error(); err != nil && !apierrors.IsNotFound(err) {
		fmt.Fprintf(s.Err, "The BundleDeployment %s of the comparison could not be deleted: %v\nIt has not installed anything. Delete it with 'ebctl bundle delete %s'.\n",
			made.Name, err, made.Name)
	}
}

// compared returns the result of a comparison. Until there is one, found is nil, and text names the reason for the wait.
func (c bundleClient) compared(ctx context.Context, comparing, name string) (found *v1alpha1.Comparison, text string, err error) {
	deployment, err := c.deployment(ctx, comparing)
	if err != nil {
		return nil, "", fmt.Errorf("reading the BundleDeployment %s: %w", comparing, err)
	}

	if deployment.Status.ObservedGeneration != deployment.Generation {
		return nil, "waiting for the provisioner of class " + deployment.Spec.ProvisionerClassName, nil
	}

	valid, installed := current(deployment, v1alpha1.TypeHasValidBundle), current(deployment, v1alpha1.TypeInstalled)

	switch {
	case deployment.Status.Comparison != nil:
		return deployment.Status.Comparison, "", nil
	case hasFailed(valid):
		return nil, "", &bundleFailedError{name, valid}
	case installed.Reason == v1alpha1.ReasonDryRun:
		return nil, "", &bundleFailedError{name, installed}
	case valid.Reason == v1alpha1.ReasonUnpackSuccessful:
		return nil, describe(installed), nil
	default:
		return nil, describe(valid), nil
	}
}

// printComparison prints differences. It returns a differentError if there are any.
func (s *session) printComparison(name string, found v1alpha1.Comparison) error {
	result := bundleComparison{name, found.Differences, found.Omitted}
	counts := map[string]int{}

	var text strings.Builder

	for _, difference := range found.Differences {
		counts[difference.Action]++

		fmt.Fprintf(&text, "%s %s\n%s", difference.Action, difference.Object, difference.Diff)
	}

	summary := fmt.Sprintf("%s would be created, %d changed, %d deleted",
		english.Plural(counts["create"], "object", ""), counts["change"], counts["delete"])
	if found.Omitted > 0 {
		summary += fmt.Sprintf(", and %d more are not listed", found.Omitted)
	}

	if len(found.Differences) == 0 {
		text.WriteString("Nothing would change.\n")
	}

	if err := s.print(result, comparisonText{text.String(), found.Differences}); err != nil {
		return err
	}

	if len(found.Differences) == 0 {
		return nil
	}

	return &differentError{name, summary}
}

// comparisonText prints the result of 'bundle diff' for people. With -o name, only the names of the objects are printed.
type comparisonText struct {
	text        string
	differences []v1alpha1.ObjectDifference
}

// WriteText implements output.Text.
func (t comparisonText) WriteText(w io.Writer) error { return output.Plain(t.text).WriteText(w) }

// Names implements output.Named.
func (t comparisonText) Names() []string {
	names := []string{}
	for _, difference := range t.differences {
		names = append(names, difference.Object)
	}

	return names
}
