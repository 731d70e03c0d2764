package ebctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// plainClass is the default provisioner class. Its format is plain+v0: a folder of manifests.
const plainClass = "core-rukpak-io-plain"

// bundleOrder contains the flags of 'bundle create'.
type bundleOrder struct {
	image                    string
	git, branch, tag, commit string
	directory                string
	http, sha256             string
	configMaps               []string
	upload                   bool

	class, bundleClass, targetSecret string
	waiting                          waiting
}

func newBundleCreateCommand(session *session, cluster *clusterFlags) *cobra.Command {
	var order bundleOrder

	command := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a BundleDeployment, which installs the content of a source",
		Long: "Create a BundleDeployment, which installs the content of a source.\n\n" +
			"Specify exactly one source: --image, --git, --http, --config-map or --upload. With --upload, the Bundle waits until you upload its content with 'ebctl bundle push'.",
		Example: "  ebctl bundle create my-addon --image registry.example.com/my-addon:v1 --wait\n" +
			"  ebctl bundle create my-addon --git https://git.example.com/my-addon.git --tag v1 --directory deploy",
		Args: arguments("NAME"),
		RunE: func(command *cobra.Command, args []string) error {
			return session.createBundle(command.Context(), *cluster, args[0], order)
		},
	}

	flags := command.Flags()
	order.addSources(flags)
	flags.BoolVar(&order.upload, "upload", false, "the content is uploaded later")
	flags.StringVar(&order.class, "class", plainClass, "the provisioner class")
	addBundleClass(flags, &order.bundleClass)
	flags.StringVar(&order.targetSecret, "target-secret", "",
		"a Secret in the provisioner's namespace with the kubeconfig of the cluster to install on (default: the cluster of the provisioner)")
	addBundleWait(command, &order.waiting)

	return command
}

// addSources adds the flags for all sources except --upload.
func (o *bundleOrder) addSources(flags *pflag.FlagSet) {
	flags.StringVar(&o.image, "image", "", "an OCI image or artifact")
	flags.StringVar(&o.git, "git", "", "a Git repository; needs --branch, --tag or --commit")
	flags.StringVar(&o.branch, "branch", "", "a branch of the Git repository")
	flags.StringVar(&o.tag, "tag", "", "a tag in the Git repository")
	flags.StringVar(&o.commit, "commit", "", "a commit in the Git repository")
	flags.StringVar(&o.directory, "directory", "", "the folder in the Git repository (default: the root)")
	flags.StringVar(&o.http, "http", "", "the URL of an archive")
	flags.StringVar(&o.sha256, "sha256", "", "the SHA-256 digest of the archive in hexadecimal digits")
	flags.StringArrayVar(&o.configMaps, "config-map", nil,
		"NAME[:FOLDER]: a ConfigMap in the provisioner's namespace, and the folder of its files in the bundle, such as content:manifests; can be repeated")
}

func addBundleClass(flags *pflag.FlagSet, class *string) {
	flags.StringVar(class, "bundle-class", "", "the provisioner class of the Bundle, which determines its format (default: the class of its BundleDeployment)")
}

// setBundleClass sets the provisioner class of the Bundle. An empty class changes nothing.
func setBundleClass(spec *v1alpha1.BundleDeploymentSpec, class string) {
	if class != "" {
		spec.Template.Spec.ProvisionerClassName = class
	}
}

// createBundle creates the BundleDeployment, waits for its installation if --wait is set, and prints the state.
func (s *session) createBundle(ctx context.Context, cluster clusterFlags, name string, order bundleOrder) error {
	source, err := order.source()
	if err != nil {
		return err
	}

	client, err := s.bundleClient(cluster)
	if err != nil {
		return err
	}

	deployment := newDeployment(name, order.class, order.targetSecret, source)
	setBundleClass(&deployment.Spec, order.bundleClass)

	created, err := client.create(ctx, deployment)
	if err != nil {
		return fmt.Errorf("creating the BundleDeployment %s: %w", name, err)
	}

	if !order.waiting.wanted {
		return s.printBundleState(bundleState{Deployment: created, Bundles: []v1alpha1.Bundle{}})
	}

	return s.finishBundle(ctx, client, name, order.waiting)
}

// source returns the source that the flags describe.
func (o bundleOrder) source() (v1alpha1.BundleSource, error) {
	chosen := 0

	for _, given := range []bool{o.image != "", o.git != "", o.http != "", len(o.configMaps) > 0, o.upload} {
		if given {
			chosen++
		}
	}

	reference := v1alpha1.GitRef{Branch: o.branch, Tag: o.tag, Commit: o.commit}

	switch {
	case chosen != 1:
		return v1alpha1.BundleSource{}, usage("specify exactly one of --image, --git, --http, --config-map or --upload")
	case o.git == "" && (reference != v1alpha1.GitRef{} || o.directory != ""):
		return v1alpha1.BundleSource{}, usage("--branch, --tag, --commit and --directory need --git")
	case o.http == "" && o.sha256 != "":
		return v1alpha1.BundleSource{}, usage("--sha256 needs --http")
	case o.git != "":
		return o.gitSource(reference)
	case o.image != "":
		return v1alpha1.BundleSource{Type: v1alpha1.SourceTypeImage, Image: &v1alpha1.ImageSource{Ref: o.image}}, nil
	case o.http != "":
		return v1alpha1.BundleSource{Type: v1alpha1.SourceTypeHTTP, HTTP: &v1alpha1.HTTPSource{URL: o.http, SHA256: o.sha256}}, nil
	case o.upload:
		return v1alpha1.BundleSource{Type: v1alpha1.SourceTypeUpload, Upload: &v1alpha1.UploadSource{}}, nil
	default:
		source := v1alpha1.BundleSource{Type: v1alpha1.SourceTypeConfigMaps}
		for _, given := range o.configMaps {
			name, folder, _ := strings.Cut(given, ":")
			source.ConfigMaps = append(source.ConfigMaps, v1alpha1.ConfigMapSource{ConfigMap: v1alpha1.LocalReference{Name: name}, Path: folder})
		}

		return source, nil
	}
}

func (o bundleOrder) gitSource(reference v1alpha1.GitRef) (v1alpha1.BundleSource, error) {
	if reference != (v1alpha1.GitRef{Branch: o.branch}) && reference != (v1alpha1.GitRef{Tag: o.tag}) && reference != (v1alpha1.GitRef{Commit: o.commit}) ||
		reference == (v1alpha1.GitRef{}) {
		return v1alpha1.BundleSource{}, usage("--git needs exactly one of --branch, --tag or --commit")
	}

	return v1alpha1.BundleSource{
		Type: v1alpha1.SourceTypeGit, Git: &v1alpha1.GitSource{Repository: o.git, Directory: o.directory, Ref: reference},
	}, nil
}
