//go:build garden

package service_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
)

// TestBundlesOfAllSources creates a Bundle of each format from each source, without a BundleDeployment and with manifests in the form of rukpak's
// documentation. The Bundle reaches the phases that rukpak documents: Pending until an upload arrives, and Unpacked.
func TestBundlesOfAllSources(t *testing.T) {
	replica, config := startAll(t)
	from, uploads := newOrigins(t, config.Namespace), reader(t, config)

	for _, kind := range []string{"image", "git", "http", "configMaps", "upload"} {
		for _, format := range []string{"plain", "registry", "helm", "kustomize"} {
			t.Run(kind+" "+format, func(t *testing.T) {
				from.T = t
				id := fmt.Sprintf("alone-%s-%s-%s", strings.ToLower(kind[:3]), format[:4], config.Namespace[len(config.Namespace)-5:])
				files, _ := bundleFiles(format, id, config.Namespace)
				class, _ := classesOf(format, config)
				manifest := "apiVersion: core.rukpak.io/v1alpha1\nkind: Bundle\nmetadata: {name: " + id + "}\nspec:\n" +
					"  provisionerClassName: " + class + "\n  source:\n" + strings.ReplaceAll(indent(from.source(kind, id, files)), "      ", "    ") + "\n"

				bundle := &v1alpha1.Bundle{}
				if err := yaml.UnmarshalStrict([]byte(manifest), bundle); err != nil {
					t.Fatalf("%v:\n%s", err, manifest)
				}

				if err := from.Create(t.Context(), bundle); err != nil {
					t.Fatalf("%v:\n%s", err, manifest)
				}

				t.Cleanup(func() { bundletest.Delete(t, from.Client, bundle) })

				if kind == "upload" {
					from.phase(bundle, v1alpha1.PhasePending, metav1.ConditionFalse, v1alpha1.ReasonUnpackPending)

					packed := from.packed(files)
					if created, err := uploads.Upload(t.Context(), replica.Address(), id, bytes.NewReader(packed), int64(len(packed))); err != nil || !created {
						t.Fatalf("the upload is new: %t, %v", created, err)
					}
				}

				from.phase(bundle, v1alpha1.PhaseUnpacked, metav1.ConditionTrue, v1alpha1.ReasonUnpackSuccessful)

				status := bundle.Status
				if status.ContentURL == "" || status.ResolvedSource == nil || status.ResolvedSource.Type != bundle.Spec.Source.Type || status.ObservedGeneration != 1 {
					t.Errorf("the status is %+v", status)
				}
			})
		}
	}
}

// phase waits until a Bundle has a phase, with the status and the reason of its condition.
func (o *origins) phase(bundle *v1alpha1.Bundle, phase v1alpha1.Phase, status metav1.ConditionStatus, reason string) {
	o.Helper()
	bundletest.Eventually(o.T, func() string {
		if err := o.Get(o.Context(), client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err.Error()
		}

		found := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.TypeUnpacked)
		if bundle.Status.Phase != phase || found == nil || found.Status != status || found.Reason != reason {
			return fmt.Sprintf("want the phase %s: %+v", phase, bundle.Status)
		}

		return ""
	})
}
