package harness

import (
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
)

// RuntimeConfig returns the client configuration in a kubeconfig. An invalid kubeconfig fails the test.
func RuntimeConfig(r Reporter, kubeconfig []byte) *rest.Config {
	r.Helper()

	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		r.Fatalf("parsing the kubeconfig: %v", err)
	}

	return config
}

// RuntimeClient returns a client with the address and the credentials in a kubeconfig. It does not call the runtime.
func RuntimeClient(r Reporter, kubeconfig []byte) *kubernetes.Clientset {
	r.Helper()

	runtime, err := kubernetes.NewForConfig(RuntimeConfig(r, kubeconfig))
	if err != nil {
		r.Fatalf("creating a client for the runtime: %v", err)
	}

	return runtime
}

// WantRuntimeResponds fails the test unless the runtime's API server returns its version to the kubeconfig's user. reason begins the
// failure message.
func WantRuntimeResponds(r Reporter, reason string, kubeconfig []byte) {
	r.Helper()

	version, err := RuntimeClient(r, kubeconfig).Discovery().ServerVersion()
	if err != nil || !strings.HasPrefix(version.GitVersion, "v1.") {
		r.Errorf("%s: the runtime returned version %v, error %v", reason, version, err)
	}
}

// SmallRuntime returns a valid order for a runtime with a small AWS cluster. The runtime and the cluster both have the given
// name.
func SmallRuntime(name string) *wire.ProvisionRuntimeInput {
	return &wire.ProvisionRuntimeInput{
		RuntimeInput: &wire.RuntimeInput{Name: name},
		ClusterConfig: &wire.ClusterConfigInput{GardenerConfig: &wire.GardenerConfigInput{
			Name: name, KubernetesVersion: "1.35.4", Provider: "aws", TargetSecret: "aws", Region: "eu-central-1",
			MachineType: "m6i.large", DiskType: new("gp3"), VolumeSizeGB: new(50), WorkerCidr: "10.250.0.0/16",
			AutoScalerMin: 1, AutoScalerMax: 3, MaxSurge: 1,
			ProviderSpecificConfig: &wire.ProviderSpecificInput{AwsConfig: &wire.AWSProviderConfigInput{
				VpcCidr: "10.250.0.0/16",
				AwsZones: []*wire.AWSZoneInput{{
					Name: "eu-central-1a", WorkerCidr: "10.250.0.0/19", PublicCidr: "10.250.32.0/20", InternalCidr: "10.250.48.0/20",
				}},
			}},
		}},
	}
}
