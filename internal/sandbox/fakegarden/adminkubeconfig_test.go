package fakegarden

import (
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
)

const (
	namespace = "garden-local"
	name      = "c-1"
)

// objects returns the objects that the garden needs to issue an admin kubeconfig.
func objects(t *testing.T) []client.Object {
	t.Helper()
	key, err := certificate.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	authority, err := certificate.NewAuthority("client authority", key)
	if err != nil {
		t.Fatal(err)
	}
	return []client.Object{
		&gardencorev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Status: gardencorev1beta1.ShootStatus{AdvertisedAddresses: []gardencorev1beta1.ShootAdvertisedAddress{
				{Name: "service-account-issuer", URL: "https://issuer"},
				{Name: "external", URL: "https://external/path"},
				{Name: "internal", URL: "https://internal"},
			}},
		},
		&gardencorev1beta1.InternalSecret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + ".ca-client"},
			Data:       map[string][]byte{"ca.crt": authority.CertificatePEM(), "ca.key": authority.KeyPEM()},
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + ".ca-cluster"},
			Data:       map[string]string{"ca.crt": "serving authority"},
		},
	}
}

func issue(t *testing.T, objects []client.Object, seconds *int64) (authenticationv1alpha1.AdminKubeconfigRequestStatus, error) {
	t.Helper()
	kinds, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(kinds).WithObjects(objects...).Build()
	request := &authenticationv1alpha1.AdminKubeconfigRequest{
		Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: seconds},
	}
	err = issueAdminKubeconfig(t.Context(), c, client.ObjectKey{Namespace: namespace, Name: name}, "someone", request)
	return request.Status, err
}

func TestExpiration(t *testing.T) {
	tests := []struct {
		reason  string
		seconds *int64
		want    time.Duration
	}{
		{"the default is an hour", nil, time.Hour},
		{"the minimum is ten minutes", new(int64(600)), 10 * time.Minute},
		{"the maximum is a day", new(int64(100_000)), 24 * time.Hour},
	}
	all := objects(t)
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			before := time.Now()
			status, err := issue(t, all, test.seconds)
			if err != nil {
				t.Fatal(err)
			}
			if got := status.ExpirationTimestamp.Sub(before); got > test.want+time.Minute || got < test.want-time.Minute {
				t.Errorf("the kubeconfig is valid for %s, want %s", got, test.want)
			}
		})
	}
}

func TestKubeconfig(t *testing.T) {
	status, err := issue(t, objects(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(status.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, cluster := range config.Clusters {
		got[name] = cluster.Server + " " + string(cluster.CertificateAuthorityData)
	}
	want := map[string]string{
		"garden-local--c-1-external": "https://external/path serving authority",
		"garden-local--c-1-internal": "https://internal serving authority",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("clusters -want +got:\n%s", diff)
	}
	if config.CurrentContext != "garden-local--c-1-external" {
		t.Errorf("got current context %s, want the external address", config.CurrentContext)
	}
	block, _ := pem.Decode(config.AuthInfos["garden-local--c-1"].ClientCertificateData)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	subject := certificate.Subject
	if subject.CommonName != "gardener.cloud:admin:someone" || !cmp.Equal(subject.Organization, []string{"gardener.cloud:system:admins"}) {
		t.Errorf("unexpected subject %s", subject)
	}
}

func TestMissingObjects(t *testing.T) {
	all := objects(t)
	unaddressed, _ := all[0].DeepCopyObject().(*gardencorev1beta1.Shoot)
	unaddressed.Status.AdvertisedAddresses = unaddressed.Status.AdvertisedAddresses[:1]
	tests := []struct {
		reason  string
		objects []client.Object
		want    metav1.StatusReason
	}{
		{"there is no shoot", all[1:], metav1.StatusReasonNotFound},
		{"the API server has no address", []client.Object{unaddressed, all[1], all[2]}, metav1.StatusReasonInvalid},
		{"there is no client authority", []client.Object{all[0], all[2]}, metav1.StatusReasonInternalError},
		{"there is no serving authority", all[:2], metav1.StatusReasonInternalError},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			if _, err := issue(t, test.objects, nil); apierrors.ReasonForError(err) != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
