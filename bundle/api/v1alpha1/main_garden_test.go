//go:build garden

package v1alpha1_test

import (
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/test/apiserver"
)

// api is the configuration of the API server that all tests share.
var api *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, &api, apiserver.CRDs)) }
