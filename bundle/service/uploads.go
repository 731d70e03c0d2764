package service

import (
	"context"
	"fmt"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// cleanUp removes the upload of a deleted Bundle, unless a rollback may need it.
func (s *Service) cleanUp(ctx context.Context, bundle *v1alpha1.Bundle) error {
	if upload := bundle.Spec.Source.Upload; upload != nil && upload.SHA256 != "" {
		kept, err := s.keptUploads(ctx)
		if err != nil || kept[bundle.Name] {
			return err
		}
	}

	return s.contents.RemoveUpload(bundle.Name)
}

// keptUploads returns the names of the Bundles whose uploads a rollback may need: those in the histories of BundleDeployments, if
// the template in the history has an upload with a digest as its source. The name of a Bundle is derived from its template, so a
// rollback creates a Bundle with the same name, and the digest ensures that the kept upload is the content of that template.
func (s *Service) keptUploads(ctx context.Context) (map[string]bool, error) {
	list := &v1alpha1.BundleDeploymentList{}
	if err := s.manager.GetClient().List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing BundleDeployments: %w", err)
	}

	names := map[string]bool{}

	for i := range list.Items {
		if !list.Items[i].DeletionTimestamp.IsZero() {
			continue
		}

		for _, version := range list.Items[i].Status.History {
			if upload := version.Template.Spec.Source.Upload; upload != nil && upload.SHA256 != "" {
				names[version.Bundle] = true
			}
		}
	}

	return names, nil
}
