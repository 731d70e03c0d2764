package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/clients/gardenclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
)

// rulesFile is the name of the file in the sandbox folder that contains the account pool rules. Users may edit it.
const rulesFile = "account-pool.yaml"

// poolRules is the content of the rules file in a new sandbox. Accounts with the euAccess label need no rule, because they are
// for platform regions with EU access.
const poolRules = `# Which instances use which accounts: see docs/operator/account-pool.md
rule:
  - aws
  - azure
  - azure_lite
  - gcp
  - sap-converged-cloud
  - free
  - preview
  - trial -> S
`

// accountsPerProvider is the number of free accounts that a new sandbox has for each provider. Each account serves one tenant.
const accountsPerProvider = 5

// poolAccounts returns the labels of the accounts in a new sandbox, keyed by provider and then by account name. The account
// aws-dirty cannot be used until it has been emptied.
func poolAccounts() map[string]map[string]map[string]string {
	const set = "true"

	all := map[string]map[string]map[string]string{}

	for _, provider := range []string{"aws", "azure", "gcp", "openstack"} {
		accounts := map[string]map[string]string{
			provider + "-eu":     {gardenclient.LabelEUAccess: set},
			provider + "-shared": {gardenclient.LabelShared: set},
		}
		for number := range accountsPerProvider {
			accounts[provider+"-"+strconv.Itoa(number+1)] = nil
		}

		all[provider] = accounts
	}

	all["aws"]["aws-dirty"] = map[string]string{gardenclient.LabelDirty: set, gardenclient.LabelTenant: "former-tenant"}
	all["gcp"]["gcp-internal"] = map[string]string{gardenclient.LabelInternal: set}

	return all
}

// poolAccount returns an account without labels. The object is unstructured, because the local garden's client does not know the
// CredentialsBinding type.
func poolAccount(namespace, provider, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "security.gardener.cloud/v1alpha1", "kind": "CredentialsBinding",
		"metadata":       map[string]any{"name": name, "namespace": namespace},
		"provider":       map[string]any{"type": provider},
		"credentialsRef": map[string]any{"apiVersion": "v1", "kind": "Secret", "name": provider, "namespace": namespace},
	}}
}

// preparePool creates the accounts that are missing from the garden, and the rules file if it does not exist. It does not change
// existing accounts, because the broker may have labeled them.
func (c Config) preparePool(ctx context.Context, garden client.Client) error {
	namespace := "garden-" + fakegarden.DefaultProject

	for provider, accounts := range poolAccounts() {
		for name, labels := range accounts {
			binding := poolAccount(namespace, provider, name)
			all := map[string]string{gardenclient.LabelType: provider}
			maps.Copy(all, labels)
			binding.SetLabels(all)

			if err := garden.Create(ctx, binding); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("adding account %s: %w", name, err)
			}
		}
	}

	path := filepath.Join(c.Dir, rulesFile)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	return failure.While(atomicfile.Write(path, []byte(poolRules)), "writing the account pool rules")
}

// usePool turns on the broker's account pool.
func (c Config) usePool(settings *broker.Config, kubeconfig string) {
	settings.AccountPool.RulesFile = filepath.Join(c.Dir, rulesFile)
	settings.Gardener.Project, settings.Gardener.KubeconfigPath = fakegarden.DefaultProject, kubeconfig
}
