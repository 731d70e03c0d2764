package ebctl

import (
	"cmp"
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// bundleRun contains the flags of 'bundle run'.
type bundleRun struct {
	class, bundleClass, targetSecret, server string
	// targetKubeconfig is the path of a kubeconfig file. Its content is stored in a Secret in the given namespace.
	targetKubeconfig, namespace string

	credentials contentFlags
	waiting     waiting
}

func newBundleRunCommand(session *session, cluster *clusterFlags) *cobra.Command {
	var order bundleRun

	command := &cobra.Command{
		Use:   "run NAME FOLDER",
		Short: "Install a folder: upload it, and create or change the BundleDeployment",
		Long: "Install a folder: upload it, and create or change the BundleDeployment.\n\n" +
			"The same folder always produces the same archive, so the command is idempotent. If the content has changed, it installs a new version. " +
			"The token needs the bundle-uploader " +
			"ClusterRole.",
		Example: "  ebctl bundle run my-addon ./my-addon --target-kubeconfig my-runtime.kubeconfig --wait\n" +
			"  ebctl bundle run my-addon ./my-addon --target-secret my-runtime --wait",
		Args: arguments("NAME", "FOLDER"),
		RunE: func(command *cobra.Command, args []string) error {
			return session.runBundle(command.Context(), *cluster, args[0], args[1], order)
		},
	}

	order.credentials.add(command)

	flags := command.Flags()
	flags.StringVar(&order.server, "server", "", "the https address of the content server (default: the uploadURL of the Bundle)")
	flags.StringVar(&order.class, "class", "", "the provisioner class (default: the class of the BundleDeployment, or "+plainClass+")")
	addBundleClass(flags, &order.bundleClass)
	flags.StringVar(&order.targetSecret, "target-secret", "",
		"a Secret in the provisioner's namespace with the kubeconfig of the cluster to install on (default: the cluster of the provisioner)")
	flags.StringVar(&order.targetKubeconfig, "target-kubeconfig", "",
		"a file with the kubeconfig of the cluster to install on; it is stored in the Secret NAME-kubeconfig, which is deleted with the BundleDeployment")
	flags.StringVar(&order.namespace, "namespace", "", "the provisioner's namespace (default: the namespace of the kubeconfig's context, or "+provisionerNamespace+")")
	addBundleWait(command, &order.waiting)
	command.MarkFlagsMutuallyExclusive("target-secret", "target-kubeconfig")

	return command
}

// runBundle packs a folder, stores the BundleDeployment and the kubeconfig of its target, uploads the archive, waits for the
// installation if --wait is set, and prints the state.
func (s *session) runBundle(ctx context.Context, cluster clusterFlags, name, folder string, order bundleRun) error {
	archive, err := pack(ctx, folder)
	if err != nil {
		return err
	}
	defer archive.Close()

	client, err := s.bundleClient(cluster)
	if err != nil {
		return err
	}

	// Check the credentials for the upload first, so that nothing changes without them.
	if _, err := s.contentConfig(cluster, order.credentials); err != nil {
		return err
	}

	var kubeconfig []byte

	if order.targetKubeconfig != "" {
		if kubeconfig, err = targetKubeconfig(order.targetKubeconfig); err != nil {
			return err
		}

		order.targetSecret = name + "-kubeconfig"

		if err := client.checkSecret(ctx, s.provisionerNamespace(cluster, order.namespace), order.targetSecret, name); err != nil {
			return err
		}
	}

	deployment, err := client.store(ctx, name, order, v1alpha1.BundleSource{
		Type: v1alpha1.SourceTypeUpload, Upload: &v1alpha1.UploadSource{SHA256: archive.digest},
	})
	if err != nil {
		return err
	}

	if kubeconfig != nil {
		if err := client.storeKubeconfig(ctx, s.provisionerNamespace(cluster, order.namespace), deployment, kubeconfig); err != nil {
			return err
		}
	}

	if err := s.uploadTo(ctx, cluster, client, deployment, archive, order); err != nil {
		return err
	}

	return s.finishBundle(ctx, client, name, order.waiting)
}

// store creates the BundleDeployment with the given source, or changes the source of the existing one. It fails if the existing
// one has another class, another target or another type of source.
func (c bundleClient) store(ctx context.Context, name string, order bundleRun, source v1alpha1.BundleSource) (v1alpha1.BundleDeployment, error) {
	changed, err := c.change(ctx, name, func(deployment *v1alpha1.BundleDeployment) error {
		template := &deployment.Spec.Template.Spec

		switch target := deployment.Spec.Target; {
		case template.Source.Type != v1alpha1.SourceTypeUpload:
			return usage("the source of the BundleDeployment %s is %s, but 'run' changes only uploads: use another name", name, sourceText(template.Source))
		case order.targetSecret != "" && (target == nil || target.KubeconfigSecretRef.Name != order.targetSecret):
			return usage("the BundleDeployment %s has another target: use another name, or omit --target-secret and --target-kubeconfig", name)
		case order.class != "" && order.class != deployment.Spec.ProvisionerClassName:
			return usage("the BundleDeployment %s has the class %s: use another name, or omit --class", name, deployment.Spec.ProvisionerClassName)
		}

		template.Source = source
		setBundleClass(&deployment.Spec, order.bundleClass)

		return nil
	})
	if !apierrors.IsNotFound(err) {
		return changed, err
	}

	deployment := newDeployment(name, cmp.Or(order.class, plainClass), order.targetSecret, source)
	setBundleClass(&deployment.Spec, order.bundleClass)

	created, err := c.create(ctx, deployment)
	return created, failure.While(err, "creating the BundleDeployment %s", name)
}

func newDeployment(name, class, targetSecret string, source v1alpha1.BundleSource) *v1alpha1.BundleDeployment {
	deployment := &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.BundleDeploymentSpec{
			ProvisionerClassName: class,
			Template:             v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{ProvisionerClassName: class, Source: source}},
		},
	}
	if targetSecret != "" {
		deployment.Spec.Target = &v1alpha1.Target{KubeconfigSecretRef: v1alpha1.SecretKeyReference{Name: targetSecret}}
	}

	return deployment
}

// uploadTo waits until the provisioner has created the Bundle for the template of the BundleDeployment, and uploads the archive
// unless this Bundle is already unpacked.
func (s *session) uploadTo(ctx context.Context, cluster clusterFlags, client bundleClient, deployment v1alpha1.BundleDeployment, archive *packed,
	order bundleRun,
) error {
	var bundle v1alpha1.Bundle

	if err := s.pollBundle(ctx, deployment.Name, order.waiting.limit, func(ctx context.Context) (_ string, done bool, err error) {
		bundle, done, err = client.uploadable(ctx, deployment, order.server != "")

		return "waiting for the Bundle", done, err
	}); err != nil {
		return err
	}

	if bundle.Status.Phase == v1alpha1.PhaseUnpacked {
		return nil
	}

	address := bundle.Status.UploadURL

	if order.server != "" {
		var err error
		if address, err = uploadAddress(order.server, bundle.Name); err != nil {
			return err
		}
	}

	fmt.Fprintf(s.Err, "%s: uploading %d bytes for the Bundle %s\n", deployment.Name, archive.size, bundle.Name)

	return failure.While(s.upload(ctx, cluster, order.credentials, address, archive), "uploading the content of the Bundle %s", bundle.Name)
}

// uploadAddress returns the URL at which a content server accepts the content of a Bundle.
func uploadAddress(server, bundle string) (string, error) {
	address, err := url.JoinPath(server, "uploads", url.PathEscape(bundle)+".tgz")
	if err != nil {
		return "", usage("--server is not an address: %w", err)
	}

	return address, nil
}

// uploadable returns the Bundle that was made from the template of the BundleDeployment. done is true once the Bundle is
// unpacked, or waits for an upload to a known address.
func (c bundleClient) uploadable(ctx context.Context, deployment v1alpha1.BundleDeployment, addressKnown bool) (bundle v1alpha1.Bundle, done bool, err error) {
	state, err := c.state(ctx, deployment.Name)
	if err != nil {
		return bundle, false, err
	}

	for _, each := range state.Bundles {
		if made(each, deployment.Spec.Template) && each.DeletionTimestamp.IsZero() {
			bundle = each
		}
	}

	unpacked := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.TypeUnpacked)

	switch {
	case unpacked == nil:
		return bundle, false, nil
	case bundle.Status.Phase == v1alpha1.PhaseFailing:
		return bundle, false, &bundleFailedError{deployment.Name, *unpacked}
	case bundle.Status.Phase == v1alpha1.PhaseUnpacked, bundle.Status.UploadURL != "", addressKnown:
		return bundle, true, nil
	default:
		return bundle, false, usage("the provisioner of class %s reports no address for uploads: set --server", bundle.Spec.ProvisionerClassName)
	}
}
