package apiserver

import (
	"strconv"

	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/certdir"
)

// arguments are those that make a small API server, because several of them share a machine with everything else: no caches of
// watches (they save etcd work that a garden does not cause), no priorities among requests, events for minutes instead of an hour.
//
// There is no controller-manager. So the admission of ServiceAccounts is off, for nobody makes the default ones that it asks for, and
// so is the server's part of garbage collection, or deletions in the foreground would never end.
func arguments(config Config, serving certdir.Files) []string {
	authority := config.Certificates.Authority()
	return append([]string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(config.Port),
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24",

		"--etcd-servers=" + config.EtcdURL,
		"--etcd-prefix=" + config.EtcdPrefix,
		"--watch-cache=false",
		"--event-ttl=10m",

		"--tls-cert-file=" + serving.Certificate,
		"--tls-private-key-file=" + serving.Key,
		"--client-ca-file=" + config.ClientCAFile,
		"--authorization-mode=RBAC",
		"--allow-privileged=true",

		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + authority.Key,
		"--service-account-key-file=" + authority.Certificate,

		"--disable-admission-plugins=ServiceAccount",
		"--enable-garbage-collector=false",
		"--enable-priority-and-fairness=false",
		"--profiling=false",
	}, config.Args...)
}
