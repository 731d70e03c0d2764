package app

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
)

// newClient returns a client for the objects of the garden and for those that say who may do what with them.
func newClient(config *rest.Config) (client.WithWatch, error) {
	types, err := fakegarden.NewScheme()
	if err != nil {
		return nil, err
	}
	if err := rbacv1.AddToScheme(types); err != nil {
		return nil, fmt.Errorf("register the types of the rights: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: types})
	if err != nil {
		return nil, fmt.Errorf("make the client of the garden: %w", err)
	}
	return c, nil
}
