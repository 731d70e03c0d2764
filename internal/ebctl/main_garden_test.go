//go:build garden

package ebctl_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/test/apiserver"
)

// bundleAPI is the configuration of the API server that the tests of 'ebctl bundle' share.
var bundleAPI *rest.Config

// tests runs the tests of the package with an API server.
type tests struct{ *testing.M }

func (t tests) Run() int { return apiserver.Main(t.M, &bundleAPI, apiserver.CRDs) }
