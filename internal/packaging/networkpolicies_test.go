package main

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// endpoint is one end of a connection: a Pod with its labels, in a namespace that has its name as a label. Systems outside of the
// cluster have neither.
type endpoint struct {
	labels, namespaceLabels map[string]string
	// ports contains the container's ports by name.
	ports map[string]int32
}

// inNamespace returns a Pod in another namespace.
func inNamespace(name string) endpoint {
	return endpoint{namespaceLabels: map[string]string{corev1.LabelMetadataName: name}}
}

// TestNetworkPolicies evaluates the policies of the chart for connections that the services need, and for others.
func TestNetworkPolicies(t *testing.T) {
	objects := mustRender(t, "production", "broker: {config: {APP_DATABASE_PORT: '5433,5434', APP_DATABASE_POOLER: 'pgbouncer:6432'}}")
	policies := policiesOf(t, objects)
	pods := map[string]endpoint{"outside": {}, "stranger": {labels: map[string]string{"app": "x"}, namespaceLabels: map[string]string{corev1.LabelMetadataName: namespace}}}

	for service, deployment := range deployments(t, objects) {
		pod := endpoint{deployment.Spec.Template.Labels, map[string]string{corev1.LabelMetadataName: namespace}, map[string]int32{}}
		for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
			pod.ports[port.Name] = port.ContainerPort
		}

		pods[service] = pod
	}

	for _, other := range []string{"ingress-nginx", "monitoring", "databases"} {
		pods[other] = inNamespace(other)
	}

	cases := []struct {
		from, to string
		port     int32
		want     bool
	}{
		{"ingress-nginx", "broker", 8080, true},
		{"outside", "broker", 8080, false},
		{"stranger", "broker", 8080, false},
		{"ingress-nginx", "broker", 8071, false},
		{"monitoring", "broker", 8071, true},
		{"monitoring", "provisioner", 3001, true},
		{"monitoring", "bundler", 8081, true},
		{"monitoring", "broker", 8080, false},
		{"broker", "provisioner", 3000, true},
		{"broker", "provisioner", 3001, false},
		{"bundler", "provisioner", 3000, false},
		{"ingress-nginx", "provisioner", 3000, false},
		{"provisioner", "bundler", 8443, true},
		{"bundler", "bundler", 8443, true},
		{"stranger", "bundler", 8443, false},
		{"broker", "databases", 5433, true},
		{"broker", "databases", 5434, true},
		{"broker", "databases", 6432, true},
		{"broker", "databases", 5432, false},
		{"provisioner", "databases", 5432, true},
		{"bundler", "databases", 5432, false},
		{"broker", "monitoring", 5433, false},
		{"provisioner", "outside", 443, true},
		{"bundler", "outside", 6443, true},
		{"broker", "outside", 4318, true},
		{"broker", "outside", 80, false},
		{"broker", "outside", 53, true},
	}

	for _, c := range cases {
		t.Run(fmt.Sprintf("%s to %s:%d", c.from, c.to, c.port), func(t *testing.T) {
			from, to := pods[c.from], pods[c.to]
			if got := sends(policies, from, to, c.port) && receives(policies, from, to, c.port); got != c.want {
				t.Errorf("allowed: %t, want %t", got, c.want)
			}
		})
	}
}

// TestNoNetworkPolicies checks that the policies can be left to the cluster's administrators.
func TestNoNetworkPolicies(t *testing.T) {
	if found := policiesOf(t, mustRender(t, "production", "networkPolicy: {enabled: false}")); len(found) > 0 {
		t.Errorf("the chart has %d policies", len(found))
	}
}

func policiesOf(t *testing.T, objects []*unstructured.Unstructured) []networkingv1.NetworkPolicySpec {
	t.Helper()

	var found []networkingv1.NetworkPolicySpec
	for _, name := range names(objects, "NetworkPolicy") {
		found = append(found, find[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", name).Spec)
	}

	return found
}

// sends reports whether the egress policies permit the connection.
func sends(policies []networkingv1.NetworkPolicySpec, from, to endpoint, port int32) bool {
	selected := selecting(policies, from, networkingv1.PolicyTypeEgress)

	return len(selected) == 0 || slices.ContainsFunc(selected, func(policy networkingv1.NetworkPolicySpec) bool {
		return slices.ContainsFunc(policy.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
			return matchesPorts(rule.Ports, to, port) && matchesPeers(rule.To, to)
		})
	})
}

// receives reports whether the ingress policies permit the connection.
func receives(policies []networkingv1.NetworkPolicySpec, from, to endpoint, port int32) bool {
	selected := selecting(policies, to, networkingv1.PolicyTypeIngress)

	return len(selected) == 0 || slices.ContainsFunc(selected, func(policy networkingv1.NetworkPolicySpec) bool {
		return slices.ContainsFunc(policy.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
			return matchesPorts(rule.Ports, to, port) && matchesPeers(rule.From, from)
		})
	})
}

// selecting returns the policies in the namespace of the release that select the Pod.
func selecting(policies []networkingv1.NetworkPolicySpec, pod endpoint, direction networkingv1.PolicyType) []networkingv1.NetworkPolicySpec {
	return slices.DeleteFunc(slices.Clone(policies), func(policy networkingv1.NetworkPolicySpec) bool {
		return pod.namespaceLabels[corev1.LabelMetadataName] != namespace || !slices.Contains(policy.PolicyTypes, direction) ||
			!matches(&policy.PodSelector, pod.labels)
	})
}

func matchesPorts(ports []networkingv1.NetworkPolicyPort, to endpoint, port int32) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(each networkingv1.NetworkPolicyPort) bool {
		if each.Port.Type == intstr.String {
			return to.ports[each.Port.StrVal] == port
		}

		return each.Port.IntVal == port
	})
}

func matchesPeers(peers []networkingv1.NetworkPolicyPeer, other endpoint) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(peer networkingv1.NetworkPolicyPeer) bool {
		if peer.NamespaceSelector == nil {
			return other.namespaceLabels[corev1.LabelMetadataName] == namespace && matches(peer.PodSelector, other.labels)
		}

		return other.namespaceLabels != nil && matches(peer.NamespaceSelector, other.namespaceLabels) &&
			(peer.PodSelector == nil || matches(peer.PodSelector, other.labels))
	})
}

func matches(selector *metav1.LabelSelector, set map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)

	return err == nil && parsed.Matches(labels.Set(set))
}
