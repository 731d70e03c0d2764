//go:build garden

package clusterclient_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// credentials returns the Secret of the service operator.
func (s *apiServer) credentials() *corev1.Secret {
	s.Helper()

	found := &corev1.Secret{}
	s.must(s.Get(s.Context(), client.ObjectKey{Namespace: "kyma-system", Name: "sap-btp-manager"}, found))

	return found
}

// wantCredentials applies the credentials and compares the Secret.
func (s *apiServer) wantCredentials(reason string, want map[string]string) *corev1.Secret {
	s.Helper()
	s.must(s.access.ApplyServiceManager(s.Context(), instance(), serviceManager()))

	found, got := s.credentials(), map[string]string{}
	for key, value := range found.Data {
		got[key] = string(value)
	}

	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("%s: -want +got\n%s", reason, diff)
	}

	return found
}

// testServiceManagerSecret checks which values ApplyServiceManager keeps and which it overwrites if other clients have changed the Secret.
func testServiceManagerSecret(s *apiServer) {
	want := map[string]string{
		"clientid": "id-" + sensitive, "clientsecret": "secret-" + sensitive, "sm_url": "https://sm.example.com",
		"tokenurl": "https://tokens.example.com", "cluster_id": instance().ServiceManagerClusterID(),
	}

	if err := s.withoutRights().ApplyServiceManager(s.Context(), instance(), serviceManager()); !failure.Is(err, failure.Permanent) {
		s.Errorf("a user without rights: %v", err)
	}

	first := s.wantCredentials("a new runtime has neither the namespace nor the Secret", want)
	if again := s.wantCredentials("a repeated call", want); again.ResourceVersion != first.ResourceVersion {
		s.Errorf("a repeated call changes the Secret from version %s to %s", first.ResourceVersion, again.ResourceVersion)
	}

	s.Run("drift", func(t *testing.T) { testDrift(s.in(t), want) })
	s.Run("another manager", func(t *testing.T) { testConflict(s.in(t), want) })
	s.Run("unchangeable", func(t *testing.T) { testUnchangeableSecret(s.in(t)) })

	s.must(s.Delete(s.Context(), s.credentials()))
	s.wantCredentials("a deleted Secret is created again", want)
}

// testDrift changes the Secret as a user would with an editor.
func testDrift(s *apiServer, want map[string]string) {
	edited := s.credentials()
	edited.Data["clientsecret"], edited.Data["extra"], edited.Data["cluster_id"] = []byte("edited"), []byte("kept"), []byte("former")
	edited.Labels["extra"] = "kept"
	delete(edited.Data, "tokenurl")
	s.must(s.Update(s.Context(), edited, client.FieldOwner("kubectl-edit")))

	changed := map[string]string{"extra": "kept", "cluster_id": "former"}
	for key, value := range want {
		if _, kept := changed[key]; !kept {
			changed[key] = value
		}
	}

	found := s.wantCredentials("credentials are restored, the cluster ID and other keys stay", changed)
	if found.Labels["extra"] != "kept" || found.Labels["app.kubernetes.io/managed-by"] != "environment-broker" {
		s.Errorf("labels: %v", found.Labels)
	}

	delete(found.Data, "cluster_id")
	delete(found.Data, "extra")
	s.must(s.Update(s.Context(), found, client.FieldOwner("kubectl-edit")))
	s.wantCredentials("a lost cluster ID is derived from the instance", want)
}

// testConflict applies the same fields as another client first. The broker takes them over; without force, the other client then
// gets a conflict.
func testConflict(s *apiServer, want map[string]string) {
	other := func(options ...client.ApplyOption) error {
		object := corev1apply.Secret("sap-btp-manager", "kyma-system").WithData(map[string][]byte{"clientsecret": []byte("other"), "region": []byte("eu10")})

		return s.Apply(s.Context(), object, append(options, client.FieldOwner("other"))...)
	}

	if err := other(); !apierrors.IsConflict(err) {
		s.Errorf("the broker owns its fields: %v", err)
	}

	s.must(other(client.ForceOwnership))

	taken := map[string]string{"region": "eu10"}
	maps.Copy(taken, want)

	s.wantCredentials("the broker takes over its fields and leaves those of others", taken)

	if err := other(); !apierrors.IsConflict(err) {
		s.Errorf("the broker owns its fields again: %v", err)
	}
}

// testUnchangeableSecret checks that the error is permanent if the API server refuses to change the Secret.
func testUnchangeableSecret(s *apiServer) {
	frozen := s.credentials()
	frozen.Data["clientid"], frozen.Immutable = []byte("other"), new(true)
	s.must(s.Update(s.Context(), frozen))

	if err := s.access.ApplyServiceManager(s.Context(), instance(), serviceManager()); !failure.Is(err, failure.Permanent) {
		s.Errorf("an immutable Secret: %v", err)
	}

	s.must(s.Delete(s.Context(), frozen))
	s.must(s.Create(s.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kyma-system", Name: "sap-btp-manager"}, Type: "example.com/other",
	}))

	if err := s.access.ApplyServiceManager(s.Context(), instance(), serviceManager()); !failure.Is(err, failure.Permanent) {
		s.Errorf("a Secret of another type: %v", err)
	}
}
