package ebctl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
)

const (
	deployments = "bundledeployments"
	bundles     = "bundles"

	// maxAnswer is the maximum size of an API server response in bytes. pageSize is the maximum number of objects on each page of
	// a list.
	maxAnswer = 64 << 20
	pageSize  = "500"
)

func newBundleCommand(session *session) *cobra.Command {
	var cluster clusterFlags

	command := group("bundle", "Install Bundles on clusters, show their state, and read and upload content",
		newBundleCreateCommand(session, &cluster),
		newBundleGetCommand(session, &cluster),
		newBundleListCommand(session, &cluster),
		newBundleContentCommand(session, &cluster),
		newBundlePushCommand(session, &cluster),
		newBundleRunCommand(session, &cluster),
		newBundleDiffCommand(session, &cluster),
		newBundleHistoryCommand(session, &cluster),
		newBundleRollbackCommand(session, &cluster),
		newBundleSuspendCommand(session, &cluster),
		newBundleResumeCommand(session, &cluster),
		newBundleDeleteCommand(session, &cluster),
	)
	command.Long = "Install Bundles on clusters, show their state, and read and upload content.\n\n" +
		"The commands call the Kubernetes API server of the bundle provisioner with a kubeconfig, not the broker: the global flags for the broker's address and " +
		"credentials have no effect."

	flags := command.PersistentFlags()
	flags.StringVar(&cluster.kubeconfig, "kubeconfig", "", "the kubeconfig (KUBECONFIG; default ~/.kube/config)")
	flags.StringVar(&cluster.context, "kube-context", "", "the context of the kubeconfig (default: the current one)")

	if err := command.MarkPersistentFlagFilename("kubeconfig"); err != nil {
		panic(err) // a programming error
	}

	completeBy(command, "kube-context", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return session.kubeContexts(cluster), cobra.ShellCompDirectiveNoFileComp
	})

	return command
}

// clusterFlags contains the flags that select the API server.
type clusterFlags struct{ kubeconfig, context string }

// loader returns the kubeconfig that the flags and KUBECONFIG select.
func (s *session) loader(cluster clusterFlags) clientcmd.ClientConfig {
	rules := &clientcmd.ClientConfigLoadingRules{
		ExplicitPath: cluster.kubeconfig, Precedence: filepath.SplitList(s.Environment(clientcmd.RecommendedConfigPathEnvVar)),
	}
	if len(rules.Precedence) == 0 {
		rules.Precedence = []string{clientcmd.RecommendedHomeFile}
	}

	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: cluster.context})
}

// kubeContexts returns the names of the contexts in the kubeconfig, for shell completion, or nil if the kubeconfig cannot be
// read.
func (s *session) kubeContexts(cluster clusterFlags) []cobra.Completion {
	loaded, err := s.loader(cluster).RawConfig()
	if err != nil {
		return nil
	}

	names := make([]cobra.Completion, 0, len(loaded.Contexts))
	for name := range loaded.Contexts {
		names = append(names, name)
	}

	return names
}

// bundleClient calls the API server that stores the Bundles. It returns objects in the form in which kubectl shows them: see
// shownDeployment.
type bundleClient struct{ api rest.Interface }

// bundleClient returns a client for the API server that the flags select.
func (s *session) bundleClient(cluster clusterFlags) (bundleClient, error) {
	if s.timeout <= 0 {
		return bundleClient{}, usage("--timeout must be positive")
	}

	config, err := s.loader(cluster).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		err = errors.New("there is no kubeconfig: set --kubeconfig or KUBECONFIG")
	}

	if err != nil {
		return bundleClient{}, usage("%w", err)
	}

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return bundleClient{}, fmt.Errorf("preparing the Kubernetes client: %w", err)
	}

	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // for the Status objects of errors

	config.Timeout, config.UserAgent = s.timeout, "ebctl/"+s.Version
	config.WarningHandler = rest.NewWarningWriter(s.Err, rest.WarningWriterOptions{Deduplicate: true})

	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.GroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.Wrap(bounds.Responses(maxAnswer))

	api, err := rest.RESTClientFor(config)
	if err != nil {
		return bundleClient{}, usage("the kubeconfig is invalid: %w", err)
	}

	return bundleClient{api}, nil
}

// withBundles returns the run function of a command that calls the API server that the flags select.
func (s *session) withBundles(
	cluster *clusterFlags, run func(ctx context.Context, client bundleClient, args []string) error,
) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		client, err := s.bundleClient(*cluster)
		if err != nil {
			return err
		}

		return run(command.Context(), client, args)
	}
}

// create creates a BundleDeployment and returns the stored object.
func (c bundleClient) create(ctx context.Context, deployment *v1alpha1.BundleDeployment) (v1alpha1.BundleDeployment, error) {
	var created v1alpha1.BundleDeployment
	if err := c.api.Post().Resource(deployments).Body(deployment).Do(ctx).Into(&created); err != nil {
		return v1alpha1.BundleDeployment{}, err
	}

	return shownDeployment(created), nil
}

func (c bundleClient) deployment(ctx context.Context, name string) (v1alpha1.BundleDeployment, error) {
	var found v1alpha1.BundleDeployment
	if err := c.api.Get().Resource(deployments).Name(name).Do(ctx).Into(&found); err != nil {
		return v1alpha1.BundleDeployment{}, err
	}

	return shownDeployment(found), nil
}

func (c bundleClient) bundle(ctx context.Context, name string) (v1alpha1.Bundle, error) {
	var found v1alpha1.Bundle
	if err := c.api.Get().Resource(bundles).Name(name).Do(ctx).Into(&found); err != nil {
		return v1alpha1.Bundle{}, err
	}

	return shownBundle(found), nil
}

func (c bundleClient) deployments(ctx context.Context) ([]v1alpha1.BundleDeployment, error) {
	found := []v1alpha1.BundleDeployment{}

	for next := ""; ; {
		var page v1alpha1.BundleDeploymentList
		if err := c.api.Get().Resource(deployments).Param("limit", pageSize).Param("continue", next).Do(ctx).Into(&page); err != nil {
			return nil, err
		}

		for _, each := range page.Items {
			found = append(found, shownDeployment(each))
		}

		if next = page.Continue; next == "" {
			return found, nil
		}
	}
}

// bundles reads the Bundles that match a label selector. An empty selector matches all Bundles.
func (c bundleClient) bundles(ctx context.Context, selector string) ([]v1alpha1.Bundle, error) {
	found := []v1alpha1.Bundle{}

	for next := ""; ; {
		var page v1alpha1.BundleList

		request := c.api.Get().Resource(bundles).Param("labelSelector", selector).Param("limit", pageSize).Param("continue", next)
		if err := request.Do(ctx).Into(&page); err != nil {
			return nil, err
		}

		for _, each := range page.Items {
			found = append(found, shownBundle(each))
		}

		if next = page.Continue; next == "" {
			return found, nil
		}
	}
}

// shownDeployment returns a BundleDeployment as kubectl shows it: with its kind, and without managed fields.
func shownDeployment(deployment v1alpha1.BundleDeployment) v1alpha1.BundleDeployment {
	deployment.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindBundleDeployment))
	deployment.ManagedFields = nil

	return deployment
}

func shownBundle(bundle v1alpha1.Bundle) v1alpha1.Bundle {
	bundle.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindBundle))
	bundle.ManagedFields = nil

	return bundle
}
