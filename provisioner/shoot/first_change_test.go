package shoot_test

import (
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// TestFirstChange compares an order with Shoots that differ from it.
func TestFirstChange(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		alter  func(present *gardencorev1beta1.Shoot)
		want   []string
	}{
		"Same": {reason: "The IDs of operations do not count.", alter: func(present *gardencorev1beta1.Shoot) {
			present.Annotations[shoot.AnnotationOperationID] = "another"
		}},
		"Others": {reason: "Fields that the order does not have stay.", alter: func(present *gardencorev1beta1.Shoot) {
			present.Labels["team"] = "blue"
			present.Spec.Kubernetes.VerticalPodAutoscaler = &gardencorev1beta1.VerticalPodAutoscaler{Enabled: true}
			present.Spec.Extensions = append(present.Spec.Extensions, gardencorev1beta1.Extension{Type: "theirs"})
			present.Spec.Provider.Workers = append(present.Spec.Provider.Workers, gardencorev1beta1.Worker{Name: "theirs"})
			present.Spec.Provider.Workers[0].Labels = map[string]string{"a": "b"}
		}},
		"Raised": {reason: "A version that Gardener has raised stays.", alter: func(present *gardencorev1beta1.Shoot) {
			present.Spec.Kubernetes.Version = "1.34.99"
		}},
		"Differences": {
			reason: "The order replaces these fields.",
			alter: func(present *gardencorev1beta1.Shoot) {
				present.Spec.Provider.WorkersSettings.SSHAccess.Enabled = true
				present.Spec.Provider.Workers[0].Maximum = 7
				present.Spec.Extensions = present.Spec.Extensions[1:]
				delete(present.Labels, shoot.LabelRuntimeID)
			},
			want: []string{
				`metadata.labels[provisioner.environment-broker.io/runtime-id]: set to "rt-1"`,
				`spec.extensions[own].type: set to "own"`,
				"spec.provider.workersSettings.sshAccess.enabled: true becomes false",
				"spec.provider.workers[cpu-worker-0].maximum: 7 becomes 20",
			},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			objects, err := shoot.Build(runtimeOf(awsOrder()), shoot.Options{Extensions: []string{"own", shoot.ExtensionOIDC}})
			if err != nil {
				t.Fatal(err)
			}

			present := objects.Shoot.DeepCopy()
			tc.alter(present)

			changes, err := objects.FirstChange(present)
			if err != nil {
				t.Fatal(err)
			}

			var got []string
			for _, each := range changes {
				got = append(got, each.String())
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNotInOrder compares an order with a Shoot that Gardener has given its defaults, and that somebody has changed.
func TestNotInOrder(t *testing.T) {
	t.Parallel()

	objects, err := shoot.Build(runtimeOf(awsOrder()), shoot.Options{})
	if err != nil {
		t.Fatal(err)
	}

	present := objects.Shoot.DeepCopy()
	gardencorev1beta1.SetObjectDefaults_Shoot(present)

	present.Spec.Kubernetes.Kubelet.MaxPods = new(int32(99))
	present.Spec.Kubernetes.VerticalPodAutoscaler = &gardencorev1beta1.VerticalPodAutoscaler{Enabled: true}
	present.Spec.Provider.Workers[0].Labels = map[string]string{"team": "blue"}

	got, err := objects.NotInOrder(present)
	if err != nil {
		t.Fatal(err)
	}

	want := []string{"spec.kubernetes.kubelet.maxPods", "spec.kubernetes.verticalPodAutoscaler", "spec.maintenance.timeWindow", "spec.provider.workers[cpu-worker-0].labels"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
