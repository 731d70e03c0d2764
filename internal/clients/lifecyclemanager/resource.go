package lifecyclemanager

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/labels/tenancy"
)

// Labels of the Secret and the Kyma resource of a runtime. Lifecycle Manager and operators' tools select the objects by these
// labels.
const (
	labelInstance      = "kyma-project.io/instance-id"
	labelRuntime       = "kyma-project.io/runtime-id"
	labelPlanID        = "kyma-project.io/broker-plan-id"
	labelPlanName      = "kyma-project.io/broker-plan-name"
	labelGlobalAccount = "kyma-project.io/global-account-id"
	labelSubAccount    = "kyma-project.io/subaccount-id"
	labelShoot         = "kyma-project.io/shoot-name"
	labelRegion        = "kyma-project.io/region"
	labelProvider      = "kyma-project.io/provider"
	labelKymaName      = "operator.kyma-project.io/kyma-name"
	labelManagedBy     = "operator.kyma-project.io/managed-by"

	managedByLifecycleManager = "lifecycle-manager"
)

// defaultTemplate is the Kyma template of plans that do not configure one.
const defaultTemplate = "apiVersion: operator.kyma-project.io/v1beta2\nkind: Kyma\n"

// Settings configure the Kyma resources of a plan's runtimes.
type Settings struct {
	// Template is a Kyma resource as YAML. If it is empty, an empty resource of version v1beta2 is used.
	Template string
	// Channel is the release channel. If it is empty, the channel of the template applies.
	Channel string
	// Modules, if not nil, replace the modules of the template.
	Modules []Module
}

// Module is a module in the Kyma resource, in its wire format.
type Module struct {
	Name                 string `json:"name"`
	Channel              string `json:"channel,omitempty"`
	CustomResourcePolicy string `json:"customResourcePolicy,omitempty"`
}

// Objects describes the two objects in the control plane that belong to a runtime.
type Objects struct {
	Secret, Kyma Ref
	// labels are set on both objects. kyma is the Kyma resource without these labels.
	labels map[string]string
	kyma   unstructured.Unstructured
}

// Records returns the broker's records of both objects for an instance.
func (o Objects) Records(instanceID string, state environment.OutsideState) []environment.OutsideObject {
	record := environment.OutsideObject{InstanceID: instanceID, System: environment.SystemLifecycleManager, State: state}
	kubeconfig, kyma := record, record
	kubeconfig.Kind, kubeconfig.Key = environment.KindKubeconfig, o.Secret.String()
	kyma.Kind, kyma.Key = environment.KindKymaResource, o.Kyma.String()

	return []environment.OutsideObject{kubeconfig, kyma}
}

// Channel returns the channel of the Kyma resource, or an empty string if Lifecycle Manager chooses it.
func (o Objects) Channel() string {
	channel, _, _ := unstructured.NestedString(o.kyma.Object, "spec", "channel")

	return channel
}

// ParseTemplate parses a template and returns the Kyma resource in it. The text of its error is a predicate without a subject,
// which callers must add.
func ParseTemplate(text string) (unstructured.Unstructured, error) {
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil || object == nil {
		return unstructured.Unstructured{}, errors.New("is not a Kubernetes object in YAML format")
	}

	template := unstructured.Unstructured{Object: object}
	kind := template.GroupVersionKind()

	metadata, isMap := object["metadata"].(map[string]any)
	if _, present := object["metadata"]; present && !isMap {
		return template, errors.New("has metadata that is not an object")
	}

	if _, isMap := object["spec"].(map[string]any); object["spec"] != nil && !isMap {
		return template, errors.New("has a spec that is not an object")
	}

	switch {
	case kind.Kind == "" || kind.Version == "" || len(validation.IsDNS1123Subdomain(kind.Group)) > 0 || len(validation.IsDNS1035Label(kind.Version)) > 0 ||
		len(validation.IsDNS1035Label(strings.ToLower(kind.Kind))) > 0:
		return template, errors.New("must have a kind, and an apiVersion with a group")
	case template.GetNamespace() != "" && len(validation.IsDNS1123Label(template.GetNamespace())) > 0:
		return template, errors.New("has an invalid namespace")
	}

	// Only these parts of the metadata are copied; the rest belongs to the API server.
	kept := map[string]any{}

	for _, name := range []string{"namespace", "labels", "annotations"} {
		if value, present := metadata[name]; present {
			kept[name] = value
		}
	}

	object["metadata"] = kept
	delete(object, "status")

	if _, _, err := unstructured.NestedStringMap(object, "metadata", "labels"); err != nil {
		return template, errors.New("has labels that are not strings")
	}

	if _, _, err := unstructured.NestedStringMap(object, "metadata", "annotations"); err != nil {
		return template, errors.New("has annotations that are not strings")
	}

	return template, nil
}

// ObjectsOf returns the objects of the instance's runtime, which must exist. They are in the namespace that the template
// specifies or, if it specifies none, in the given namespace. shootDomain is the parent domain of all clusters' domains, or
// empty.
func ObjectsOf(instance environment.Instance, settings Settings, namespace, shootDomain string) (Objects, error) {
	text := settings.Template
	if text == "" {
		text = defaultTemplate
	}

	kyma, err := ParseTemplate(text)
	if err != nil {
		return Objects{}, failure.New(failure.Permanent, "the Kyma template of plan %s %s: an operator must correct it", instance.PlanName, err).
			WithReason(failure.ReasonInternal, failure.ComponentBroker)
	}

	name := strings.ToLower(instance.RuntimeID)
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return Objects{}, failure.New(failure.Permanent, "the runtime ID %q is not a valid name for a Kubernetes object", instance.RuntimeID).
			WithReason(failure.ReasonInternal, failure.ComponentBroker)
	}

	if kyma.GetNamespace() == "" {
		kyma.SetNamespace(namespace)
	}

	kyma.SetName(name)

	if instance.Provider != "" && shootDomain != "" {
		annotations := kyma.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}

		annotations["skr-domain"] = instance.ShootName + "." + shootDomain
		kyma.SetAnnotations(annotations)
	}

	if err := settings.apply(kyma); err != nil {
		return Objects{}, err
	}

	resource, _ := meta.UnsafeGuessKindToResource(kyma.GroupVersionKind())

	return Objects{
		Secret: Ref{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, kyma.GetNamespace(), "kubeconfig-" + name},
		Kyma:   Ref{resource, kyma.GetNamespace(), name},
		labels: labelsOf(instance), kyma: kyma,
	}, nil
}

// apply sets the channel and the modules of the Kyma resource to the values that s specifies. It keeps those that s does not
// specify.
func (s Settings) apply(kyma unstructured.Unstructured) error {
	spec, _ := kyma.Object["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
		kyma.Object["spec"] = spec
	}

	if s.Channel != "" {
		spec["channel"] = s.Channel
	}

	if s.Modules == nil {
		return nil
	}

	modules := make([]any, 0, len(s.Modules))

	for _, module := range s.Modules {
		entry := map[string]any{"name": module.Name}
		if module.Channel != "" {
			entry["channel"] = module.Channel
		}

		if module.CustomResourcePolicy != "" {
			entry["customResourcePolicy"] = module.CustomResourcePolicy
		}

		modules = append(modules, entry)
	}

	return failure.While(unstructured.SetNestedSlice(kyma.Object, modules, "spec", "modules"), "setting the modules")
}

// labelsOf returns the labels of the Kyma resource and of the kubeconfig Secret of an instance. IDs that are not valid label values are
// converted by tenancy.Label.
func labelsOf(instance environment.Instance) map[string]string {
	labels := map[string]string{
		labelInstance: instance.ID, labelRuntime: instance.RuntimeID, labelPlanID: instance.PlanID, labelPlanName: instance.PlanName,
		labelGlobalAccount: instance.GlobalAccountID, labelSubAccount: instance.SubAccountID, labelShoot: instance.ClusterName(),
		labelRegion: instance.Region, labelProvider: instance.Provider, labelKymaName: strings.ToLower(instance.RuntimeID),
		labelManagedBy: managedByLifecycleManager,
	}
	for name, value := range labels {
		labels[name] = tenancy.Label(value)
	}

	return labels
}

// secretObject returns the Secret with the given content and annotations, and with the labels that both objects share.
func (o Objects) secretObject(content map[string][]byte, annotations map[string]string) *corev1.Secret {
	secret := &corev1.Secret{Data: content, Type: corev1.SecretTypeOpaque}
	secret.APIVersion, secret.Kind = "v1", "Secret"
	secret.Name, secret.Namespace = o.Secret.Name, o.Secret.Namespace
	secret.Labels, secret.Annotations = maps.Clone(o.labels), annotations

	return secret
}

// kymaObject returns the Kyma resource with the labels of the template and of the runtime.
func (o Objects) kymaObject() map[string]any {
	kyma := o.kyma.DeepCopy()

	labels := kyma.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}

	maps.Copy(labels, o.labels)
	kyma.SetLabels(labels)

	return kyma.Object
}

// describe names an object, for error messages.
func describe(ref Ref) string {
	return fmt.Sprintf("%s %s/%s", ref.Resource.Resource, ref.Namespace, ref.Name)
}
