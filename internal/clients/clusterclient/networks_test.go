package clusterclient_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream/networks"
)

// loopback returns the networks of the test servers.
func loopback(t *testing.T) networks.Networks {
	t.Helper()

	allowed, err := networks.Parse([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}

	return allowed
}

// withCluster returns an instance that uses a tenant's own cluster at the address.
func withCluster(t *testing.T, server *httptest.Server, address string) environment.Instance {
	t.Helper()

	config := kubeconfig(server)
	config.Clusters["runtime"].Server = address

	own := instance()
	own.RuntimeID = ""
	own.Request.Cluster.Own = &environment.OwnCluster{Kubeconfig: secret.Stored(written(t, config))}

	return own
}

// TestAddressesOfOwnClusters checks that the broker sends no request to an address that is neither public nor allowed, in any
// notation of the address.
func TestAddressesOfOwnClusters(t *testing.T) {
	var requests atomic.Int32

	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(server.Close)

	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "https://"), ":")

	for name, host := range map[string]string{
		"loopback": "127.0.0.1", "another loopback address": "127.8.9.1", "name of loopback": "localhost", "unspecified": "0.0.0.0",
		"IPv6 loopback": "[::1]", "IPv6 unspecified": "[::]", "mapped loopback": "[::ffff:127.0.0.1]", "mapped, in hex": "[::ffff:7f00:1]",
		"private": "10.1.2.3", "private 172.16/12": "172.31.0.1", "private 192.168/16": "192.168.1.1", "shared": "100.64.0.1",
		"metadata": "169.254.169.254", "mapped metadata": "[::ffff:169.254.169.254]", "metadata of AWS in IPv6": "[fd00:ec2::254]",
		"link-local": "[fe80::1%25lo]", "multicast": "224.0.0.1", "IPv6 multicast": "[ff02::1]", "broadcast": "255.255.255.255",
		"NAT64": "[64:ff9b::7f00:1]", "6to4": "[2002:7f00:1::]", "Teredo": "[2001:0:7f00:1::]", "compatible": "[::127.0.0.1]",
		"documentation": "192.0.2.1", "benchmark": "198.18.0.1",
	} {
		t.Run(name, func(t *testing.T) {
			err := clusterclient.New(kubeconfigs{}).Probe(t.Context(), withCluster(t, server, "https://"+host+":"+port))
			if !failure.Is(err, failure.Permanent) || !strings.Contains(failure.Of(err).Text, "its address is not public") {
				t.Errorf("%s: got %v, want a permanent error that the address is not public", host, err)
			}
		})
	}

	if count := requests.Load(); count > 0 {
		t.Errorf("the broker sent %d requests to refused addresses", count)
	}

	if err := clusterclient.New(kubeconfigs{}).Allowing(loopback(t)).Probe(t.Context(), withCluster(t, server, server.URL)); err != nil {
		t.Errorf("an allowed address: %v", err)
	}

	if count := requests.Load(); count != 1 {
		t.Errorf("the broker sent %d requests to an allowed address, want 1", count)
	}
}

// TestProxyIsNotUsedForOwnClusters checks that HTTPS_PROXY does not allow the broker to reach forbidden addresses through a
// proxy.
func TestProxyIsNotUsedForOwnClusters(t *testing.T) {
	var requests atomic.Int32

	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(proxy.Close)
	t.Setenv("HTTPS_PROXY", proxy.URL)

	err := clusterclient.New(kubeconfigs{}).Probe(t.Context(), withCluster(t, runtime(t, http.StatusOK), "https://10.1.2.3:6443"))
	if !failure.Is(err, failure.Permanent) || requests.Load() > 0 {
		t.Errorf("got %v and %d requests to the proxy, want a permanent error and none", err, requests.Load())
	}
}
