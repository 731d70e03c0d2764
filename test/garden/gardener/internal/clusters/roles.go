package clusters

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/sirupsen/logrus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// maxAggregations is the maximum number of rounds in aggregateRoles. Each round aggregates one more level: edit aggregates view,
// and admin aggregates edit.
const maxAggregations = 10

// aggregateRoles completes the aggregated ClusterRoles of a runtime, such as view and edit: it adds the rules of the roles that
// they select. It returns when all aggregated roles are complete. In a real cluster, the controller-manager adds these rules.
// Without the rules, the aggregated roles allow nothing.
func aggregateRoles(ctx context.Context, client kubernetes.Interface) error {
	for range maxAggregations {
		list, err := client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("listing the cluster roles of a runtime: %w", err)
		}
		roles := make([]*rbacv1.ClusterRole, len(list.Items))
		for i := range list.Items {
			roles[i] = &list.Items[i]
		}
		changed, err := updateAggregated(ctx, client, roles)
		if err != nil || !changed {
			return err
		}
	}
	return fmt.Errorf("the cluster roles of a runtime still change after %d aggregations", maxAggregations)
}

// keepRolesAggregated repeats the aggregation whenever a ClusterRole changes, until the context ends. Users extend view and edit
// with their own ClusterRoles, which have the labels aggregate-to-view and aggregate-to-edit.
func keepRolesAggregated(ctx context.Context, admin *rest.Config, log logrus.FieldLogger) error {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("creating the client for cluster roles: %w", err)
	}
	roles := informers.NewSharedInformerFactory(client, retryAfter).Rbac().V1().ClusterRoles()
	informer := roles.Informer()
	handle := func(any) { reaggregate(ctx, client, informer, roles.Lister(), log) }
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: handle, UpdateFunc: func(_, object any) { handle(object) }, DeleteFunc: handle,
	}); err != nil {
		return fmt.Errorf("watching the cluster roles: %w", err)
	}
	informer.RunWithContext(ctx)
	return nil
}

// reaggregate updates the aggregated roles from the cache of the informer. It does nothing until the cache is complete, because it
// would remove the rules of roles that are not in the cache yet. After an error, the next event or resync tries again.
func reaggregate(ctx context.Context, client kubernetes.Interface, informer cache.SharedIndexInformer, lister rbaclisters.ClusterRoleLister,
	log logrus.FieldLogger,
) {
	if !informer.HasSynced() {
		return
	}
	roles, err := lister.List(labels.Everything())
	if err == nil {
		_, err = updateAggregated(ctx, client, roles)
	}
	if err != nil && ctx.Err() == nil {
		log.WithError(err).Debug("cannot aggregate the cluster roles of a runtime; trying again")
	}
}

// updateAggregated writes the aggregated roles whose rules differ from the selected roles, and reports whether it wrote
// any. It does not change the objects in roles.
func updateAggregated(ctx context.Context, client kubernetes.Interface, roles []*rbacv1.ClusterRole) (changed bool, err error) {
	for _, role := range roles {
		if role.AggregationRule == nil {
			continue
		}
		rules, err := aggregatedRules(role, roles)
		if err != nil {
			return changed, err
		}
		if equality.Semantic.DeepEqual(rules, role.Rules) {
			continue
		}
		updated := role.DeepCopy()
		updated.Rules = rules
		if _, err := client.RbacV1().ClusterRoles().Update(ctx, updated, metav1.UpdateOptions{}); err != nil {
			return changed, fmt.Errorf("updating the cluster role %s: %w", role.Name, err)
		}
		changed = true
	}
	return changed, nil
}

// aggregatedRules returns the distinct rules of all roles that role selects, ordered by the name of the selected role.
func aggregatedRules(role *rbacv1.ClusterRole, roles []*rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	var selectors []labels.Selector
	for _, each := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&each)
		if err != nil {
			return nil, fmt.Errorf("reading the aggregation rule of the cluster role %s: %w", role.Name, err)
		}
		selectors = append(selectors, selector)
	}
	sorted := slices.SortedFunc(slices.Values(roles), func(a, b *rbacv1.ClusterRole) int { return cmp.Compare(a.Name, b.Name) })
	var rules []rbacv1.PolicyRule
	for _, other := range sorted {
		if other.Name == role.Name || !slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(other.Labels)) }) {
			continue
		}
		for _, rule := range other.Rules {
			if !slices.ContainsFunc(rules, func(known rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(known, rule) }) {
				rules = append(rules, rule)
			}
		}
	}
	return rules, nil
}
