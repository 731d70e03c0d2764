package format

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/environment-broker/environment-broker/internal/manifest"
)

const (
	// targetAnnotation contains the namespaces that an operator watches. An empty value stands for all namespaces.
	targetAnnotation = "olm.targetNamespaces"
	// defaultAccount is the ServiceAccount that exists in each namespace.
	defaultAccount = "default"
	maxRoleName    = 63
)

// namespaced lists the kinds that a registry+v1 bundle may contain besides its ClusterServiceVersion. The value is true for kinds
// that have a namespace.
var namespaced = map[string]bool{ //nolint:gochecknoglobals // a constant table
	"CustomResourceDefinition": false,
	"ClusterRole":              false,
	"ClusterRoleBinding":       false,
	"PriorityClass":            false,
	"ConsoleYAMLSample":        false,
	"ConfigMap":                true,
	"PodDisruptionBudget":      true,
	"PrometheusRule":           true,
	"Role":                     true,
	"RoleBinding":              true,
	"Secret":                   true,
	"Service":                  true,
	"ServiceAccount":           true,
	"ServiceMonitor":           true,
	"VerticalPodAutoscaler":    true,
}

// render returns the objects that the operator describes, together with the other objects of the bundle. They are sorted by the
// order in which their kinds must be installed, and then by name.
func render(operator *clusterServiceVersion, others []*unstructured.Unstructured, namespace string) ([]*unstructured.Unstructured, error) {
	objects := map[string]*unstructured.Unstructured{}

	for _, object := range others {
		inNamespace, supported := namespaced[object.GetKind()]
		if !supported {
			return nil, fmt.Errorf("the bundle contains the %s %s, but registry+v1 does not support this kind: remove the object",
				object.GetKind(), object.GetName())
		}

		if inNamespace {
			object.SetNamespace(namespace)
		}

		if objects[identity(object)] != nil {
			return nil, fmt.Errorf("two objects of the bundle become the same object, %s, in the install namespace: remove one of them", identity(object))
		}

		objects[identity(object)] = object
	}

	generated, err := operator.objects(namespace)
	if err != nil {
		return nil, fmt.Errorf("the ClusterServiceVersion %s: %w", operator.Metadata.Name, err)
	}

	for _, object := range generated {
		// A ServiceAccount in the bundle takes the place of the generated one.
		existing := objects[identity(object)]
		if existing != nil && object.GetKind() != "ServiceAccount" {
			return nil, fmt.Errorf("the ClusterServiceVersion %s has a second %s: remove one of them", operator.Metadata.Name, identity(object))
		}

		if existing == nil {
			objects[identity(object)] = object
		}
	}

	return slices.SortedFunc(maps.Values(objects), compare), nil
}

// compare sorts objects by the order in which their kinds must be installed, and then by identity.
func compare(a, b *unstructured.Unstructured) int {
	order := []string{"Namespace", "CustomResourceDefinition", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
	rank := func(object *unstructured.Unstructured) int {
		position := slices.Index(order, object.GetKind())

		switch {
		case object.GetKind() == "Deployment":
			return len(order) + 1
		case position < 0:
			return len(order)
		default:
			return position
		}
	}

	if difference := rank(a) - rank(b); difference != 0 {
		return difference
	}

	return strings.Compare(identity(a), identity(b))
}

// objects returns the objects that the ClusterServiceVersion describes: the install namespace, ServiceAccounts, roles and Deployments.
func (o *clusterServiceVersion) objects(namespace string) ([]*unstructured.Unstructured, error) {
	install, accounts := o.Spec.Install.Spec, map[string]bool{}

	deployments := make([]*unstructured.Unstructured, 0, len(install.Deployments))

	for _, each := range install.Deployments {
		object, account, err := o.deployment(each, namespace)
		if err != nil {
			return nil, fmt.Errorf("the deployment %q: %w", each.Name, err)
		}

		deployments, accounts[account] = append(deployments, object), true
	}

	typed := []any{&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: namespace}}}

	for _, each := range o.clusterPermissions() {
		accounts[each.ServiceAccountName] = true

		typed = append(typed, o.clusterRole(each, namespace)...)
	}

	delete(accounts, defaultAccount)

	for account := range accounts {
		typed = append(typed, &corev1.ServiceAccount{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: namespace},
		})
	}

	objects := make([]*unstructured.Unstructured, 0, len(typed)+len(deployments))

	for _, each := range typed {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(each)
		if err != nil {
			return nil, fmt.Errorf("converting an object: %w", err)
		}

		unstructured.RemoveNestedField(content, "status")
		unstructured.RemoveNestedField(content, "spec")
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}

	return append(objects, deployments...), nil
}

// clusterPermissions returns the permissions that apply to the whole cluster. In the AllNamespaces install mode, these include the
// operator's namespace permissions, each with the additional permission to read namespaces. Duplicates are removed.
func (o *clusterServiceVersion) clusterPermissions() []permission {
	all := slices.Clone(o.Spec.Install.Spec.ClusterPermissions)

	for _, each := range o.Spec.Install.Spec.Permissions {
		readNamespaces := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}}
		each.Rules = append(slices.Clone(each.Rules), readNamespaces)
		all = append(all, each)
	}

	var unique []permission

	seen := map[string]bool{}

	for _, each := range all {
		if each.ServiceAccountName == "" {
			each.ServiceAccountName = defaultAccount
		}

		if name := o.roleName(each); !seen[name] {
			seen[name] = true
			unique = append(unique, each)
		}
	}

	return unique
}

// clusterRole returns a ClusterRole with the granted permission, and its ClusterRoleBinding.
func (o *clusterServiceVersion) clusterRole(granted permission, namespace string) []any {
	if granted.Rules == nil {
		granted.Rules = []rbacv1.PolicyRule{}
	}

	name := metav1.ObjectMeta{Name: o.roleName(granted)}
	version := rbacv1.SchemeGroupVersion.String()

	return []any{
		&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRole"}, ObjectMeta: name, Rules: granted.Rules},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRoleBinding"}, ObjectMeta: name,
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: granted.ServiceAccountName, Namespace: namespace}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		},
	}
}

// roleName returns a name that is derived from the operator, the ServiceAccount and the rules of the permission.
func (o *clusterServiceVersion) roleName(granted permission) string {
	text, _ := json.Marshal(granted) //nolint:errchkjson // it consists of strings
	digest := sha256.Sum256(append([]byte(o.Metadata.Name+"\n"), text...))
	suffix := "-" + hex.EncodeToString(digest[:5])
	base := strings.ToValidUTF8(o.Metadata.Name+"-"+granted.ServiceAccountName, "")

	return base[:min(len(base), maxRoleName-len(suffix))] + suffix
}

// deployment returns the Deployment and the name of its ServiceAccount.
func (o *clusterServiceVersion) deployment(from deployment, namespace string) (*unstructured.Unstructured, string, error) {
	if from.Spec == nil {
		return nil, "", errors.New("it has no spec")
	}

	spec := runtime.DeepCopyJSON(from.Spec)

	template, _, err := unstructured.NestedStringMap(spec, "template", "metadata", "annotations")
	if err != nil {
		return nil, "", err
	}

	account, _, err := unstructured.NestedString(spec, "template", "spec", "serviceAccountName")
	if err != nil {
		return nil, "", err
	}

	annotations := map[string]string{}
	maps.Copy(annotations, o.Metadata.Annotations)
	maps.Copy(annotations, template)
	annotations[targetAnnotation] = ""

	// The operator in the Pods reads this annotation to find out which namespaces it must watch.
	if err := unstructured.SetNestedField(spec, "", "template", "metadata", "annotations", targetAnnotation); err != nil {
		return nil, "", err
	}

	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}}
	object.SetName(from.Name)
	object.SetNamespace(namespace)
	object.SetAnnotations(annotations)

	if len(from.Label) > 0 {
		object.SetLabels(from.Label)
	}

	if account == "" {
		account = defaultAccount
	}

	return object, account, manifest.Check(object)
}
