package ebctl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/kubeconfig"
)

const (
	// provisionerNamespace is the default namespace of the bundle provisioner.
	provisionerNamespace = "bundle-system"
	// maxKubeconfig is the maximum size of a kubeconfig in bytes.
	maxKubeconfig = 512 << 10
)

// provisionerNamespace returns the namespace of the bundle provisioner: the given namespace if it is set, otherwise the namespace
// of the kubeconfig's context, otherwise the default.
func (s *session) provisionerNamespace(cluster clusterFlags, given string) string {
	if given != "" {
		return given
	}

	if loaded, err := s.loader(cluster).RawConfig(); err == nil {
		name := loaded.CurrentContext
		if cluster.context != "" {
			name = cluster.context
		}

		if found := loaded.Contexts[name]; found != nil && found.Namespace != "" {
			return found.Namespace
		}
	}

	return provisionerNamespace
}

// targetKubeconfig reads a kubeconfig file. Like the provisioner, it rejects a kubeconfig with an exec plugin, an auth provider
// or a reference to a file.
func targetKubeconfig(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, usage("reading the kubeconfig of the target: %w", err)
	}
	defer file.Close()

	text, err := io.ReadAll(io.LimitReader(file, maxKubeconfig+1))

	switch {
	case err != nil:
		return nil, usage("reading the kubeconfig of the target: %w", err)
	case len(text) > maxKubeconfig:
		return nil, usage("the kubeconfig of the target has more than %d bytes", maxKubeconfig)
	}

	return text, checkTargetKubeconfig(path, text)
}

// checkTargetKubeconfig rejects a kubeconfig that is malformed or contains an exec plugin, an auth provider or a reference to a
// file. The error quotes only the path.
func checkTargetKubeconfig(path string, text []byte) error {
	// Omit the parser's error, because it may quote credentials.
	parsed, err := clientcmd.Load(text)
	if err != nil || parsed.Contexts[parsed.CurrentContext] == nil {
		return usage("the file %s is not a kubeconfig with a current context", path)
	}

	for _, user := range parsed.AuthInfos {
		if kubeconfig.RefersOutside(user) {
			return usage("the kubeconfig of the target must embed its token or client certificate: exec plugins, auth providers and file references are not allowed")
		}
	}

	for _, cluster := range parsed.Clusters {
		if cluster.CertificateAuthority != "" {
			return usage("the kubeconfig of the target must embed its CA certificate: file references are not allowed")
		}
	}

	return nil
}

// checkSecret returns an error if the Secret for the kubeconfig of the target already exists and does not belong to the
// BundleDeployment of the given name. Another BundleDeployment may use such a Secret, and Kubernetes would delete it with this one.
func (c bundleClient) checkSecret(ctx context.Context, namespace, name, deployment string) error {
	var found metav1.PartialObjectMetadata

	text, err := c.api.Get().AbsPath("/api/v1/namespaces", namespace, "secrets", name).Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(text, &found)
	}

	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading the Secret %s/%s: %w", namespace, name, err)
	}

	for _, owner := range found.OwnerReferences {
		if owner.Kind == v1alpha1.KindBundleDeployment && owner.Name == deployment {
			return nil
		}
	}

	return usage("the Secret %s/%s exists and does not belong to the BundleDeployment %s: use another name, or --target-secret %s to use its kubeconfig",
		namespace, name, deployment, name)
}

// storeKubeconfig stores the kubeconfig of the target in a Secret that the BundleDeployment owns.
func (c bundleClient) storeKubeconfig(ctx context.Context, namespace string, deployment v1alpha1.BundleDeployment, kubeconfig []byte) error {
	name := deployment.Spec.Target.KubeconfigSecretRef.Name

	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": metav1.ObjectMeta{Name: name, Namespace: namespace, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindBundleDeployment, Name: deployment.Name, UID: deployment.UID,
		}}},
		"data": map[string][]byte{"kubeconfig": kubeconfig},
	})
	if err != nil {
		return fmt.Errorf("encoding a Secret: %w", err)
	}

	folder := []string{"/api/v1/namespaces", namespace, "secrets"}

	err = c.api.Post().AbsPath(folder...).SetHeader("Content-Type", "application/json").Body(bytes.NewReader(text)).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		err = c.api.Patch(types.MergePatchType).AbsPath(append(folder, name)...).Body(text).Do(ctx).Error()
	}

	return failure.While(err, "storing the kubeconfig of the target in the Secret %s/%s", namespace, name)
}
