// Command gardener-apiserver serves Gardener's API in the local garden, behind the aggregation layer of its kube-apiserver.
package main

import (
	"crypto/rand"
	"crypto/rsa"
	"io"
	"os"
	"sync"

	"github.com/gardener/gardener/cmd/gardener-apiserver/app"
	"github.com/gardener/gardener/pkg/apiserver/features"
	"github.com/gardener/gardener/pkg/utils/secrets"
	_ "k8s.io/component-base/logs/json/register" // supports --logging-format=json
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
)

func main() {
	features.RegisterFeatureGates()

	secrets.GenerateKey = sharedKeys()

	if err := app.NewCommand().ExecuteContext(signals.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}

// sharedKeys returns a generator that reuses one key per key size. Without this generator, Gardener generates a key for each
// admin kubeconfig. Each such key takes half a second of CPU time, which dominates the load when hundreds of runtimes run on one
// machine.
func sharedKeys() func(io.Reader, int) (*rsa.PrivateKey, error) {
	var (
		mutex sync.Mutex
		made  = map[int]*rsa.PrivateKey{}
	)

	return func(_ io.Reader, bits int) (*rsa.PrivateKey, error) {
		mutex.Lock()
		defer mutex.Unlock()

		if made[bits] == nil {
			key, err := rsa.GenerateKey(rand.Reader, bits)
			if err != nil {
				return nil, err
			}
			made[bits] = key
		}
		return made[bits], nil
	}
}
