package runtimes

import (
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/atomicfile"
)

const (
	administrator = "cluster-admin"

	tokenKeyFile = "token.key"
	tokenKeySize = 32
	// The limits of an API server for the lifetime of a token, in seconds.
	minTokenSeconds     = 600
	defaultTokenSeconds = 3600
)

// call is a request to a runtime by a user who has at least one role in it.
type call struct {
	*http.Request
	*runtime

	technicalID string
	user        string
	// roles are the ClusterRoles that are bound to the user.
	roles []string
}

// authenticate finds the runtime of a request and its user, by a client certificate or a token. Its errors are those of an API server: 404
// for a runtime that is not started, 401 without valid credentials, 403 for a user without a role.
func (s *Server) authenticate(r *http.Request) (call, error) {
	c := call{Request: r, technicalID: r.PathValue("id")}
	s.mu.RLock()
	c.runtime = s.runtimes[c.technicalID]
	s.mu.RUnlock()
	if c.runtime == nil {
		return c, notServed("no runtime is served here")
	}
	if !c.byCertificate() && !c.byToken(s.tokenKey) {
		unauthorized := apierrors.NewUnauthorized("Unauthorized")
		return c, unauthorized
	}
	if len(c.roles) == 0 {
		forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
		forbidden.ErrStatus.Message = "user " + c.user + " has no role in this runtime"
		return c, forbidden
	}
	return c, nil
}

// byCertificate accepts a client certificate of the runtime's authority. The TLS handshake cannot verify it, because the authority depends on
// the path of the request. Members of the groups of Gardener's admin kubeconfigs are administrators.
func (c *call) byCertificate() bool {
	if c.TLS == nil || len(c.TLS.PeerCertificates) == 0 {
		return false
	}
	certificate := c.TLS.PeerCertificates[0]
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: c.clients, KeyUsages: usage}); err != nil {
		return false
	}
	c.user = certificate.Subject.CommonName
	for _, group := range []string{v1beta1constants.ShootSystemAdminsGroupName, v1beta1constants.ShootProjectAdminsGroupName} {
		if slices.Contains(certificate.Subject.Organization, group) {
			c.roles = []string{administrator}
		}
	}
	return true
}

// byToken accepts an unexpired token for this runtime whose ServiceAccount still exists. The UID must match: tokens of a deleted account stay
// invalid when an account with its name is created.
func (c *call) byToken(key []byte) bool {
	token, given := strings.CutPrefix(c.Header.Get("Authorization"), "Bearer ")
	if !given {
		return false
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.HS256})
	if err != nil {
		return false
	}
	var claims jwt.Claims
	var private privateClaims
	if err := parsed.Claims(key, &claims, &private); err != nil {
		return false
	}
	expected := jwt.Expected{AnyAudience: jwt.Audience{c.technicalID}, Time: time.Now()}
	if err := claims.ValidateWithLeeway(expected, 0); err != nil {
		return false
	}
	namespace, named := private.Kubernetes.Namespace, private.Kubernetes.Account
	account := &corev1.ServiceAccount{}
	err = c.store.Lookup(client.ObjectKey{Namespace: namespace, Name: named.Name}, account)
	if err != nil || string(account.UID) != named.UID {
		return false
	}
	c.user, c.roles = claims.Subject, c.rolesOf(account)
	return true
}

// rolesOf returns the ClusterRoles that are bound to an account. Bindings of groups are not evaluated.
func (r *runtime) rolesOf(account *corev1.ServiceAccount) []string {
	bindings := &rbacv1.ClusterRoleBindingList{}
	if err := r.store.LookupAll(bindings); err != nil {
		return nil
	}
	var roles []string
	for _, binding := range bindings.Items {
		if slices.ContainsFunc(binding.Subjects, func(subject rbacv1.Subject) bool {
			return subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == account.Namespace && subject.Name == account.Name
		}) {
			roles = append(roles, binding.RoleRef.Name)
		}
	}
	return roles
}

// privateClaims are the claims of Kubernetes in a token: the account for which it was issued.
type privateClaims struct {
	Kubernetes struct {
		Namespace string           `json:"namespace"`
		Account   accountReference `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

type accountReference struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// addTokenRequest registers TokenRequest, which clients send to the subresource token. Nothing else of its group is served.
func addTokenRequest(scheme *k8sruntime.Scheme) error {
	scheme.AddKnownTypes(authenticationv1.SchemeGroupVersion, &authenticationv1.TokenRequest{})
	return nil
}

// createToken issues a token for an account: a JWT with the claims of Kubernetes, signed with the key of the server. Its audience is the
// technical ID, so that it is valid in this runtime only.
func (s *Server) createToken(o objects) (int, any, error) {
	account := &corev1.ServiceAccount{}
	if err := o.store.Lookup(client.ObjectKey{Namespace: o.namespace, Name: o.name}, account); err != nil {
		return 0, nil, err
	}
	request := &authenticationv1.TokenRequest{}
	if err := o.read(authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), request); err != nil {
		return 0, nil, err
	}
	seconds := int64(defaultTokenSeconds)
	if request.Spec.ExpirationSeconds != nil {
		seconds = *request.Spec.ExpirationSeconds
	}
	if seconds < minTokenSeconds {
		return 0, nil, apierrors.NewBadRequest(
			fmt.Sprintf("spec.expirationSeconds: may not specify a duration less than %d seconds", minTokenSeconds))
	}
	now := time.Now()
	expires := now.Add(time.Duration(seconds) * time.Second).Truncate(time.Second)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: s.tokenKey}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return 0, nil, err
	}
	var private privateClaims
	private.Kubernetes.Namespace = o.namespace
	private.Kubernetes.Account = accountReference{Name: o.name, UID: string(account.UID)}
	token, err := jwt.Signed(signer).Claims(private).Claims(jwt.Claims{
		Audience: jwt.Audience{o.technicalID}, Subject: "system:serviceaccount:" + o.namespace + ":" + o.name,
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(expires),
	}).Serialize()
	if err != nil {
		return 0, nil, err
	}
	request.TypeMeta = metav1.TypeMeta{Kind: "TokenRequest", APIVersion: authenticationv1.SchemeGroupVersion.String()}
	request.ObjectMeta = metav1.ObjectMeta{Name: o.name, Namespace: o.namespace, CreationTimestamp: metav1.NewTime(now)}
	request.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(expires)}
	return http.StatusCreated, request, nil
}

// read decodes the body of a request, which must be of the wanted kind and at most maxBody long.
func (c call) read(wanted schema.GroupVersionKind, into k8sruntime.Object) error {
	body, err := io.ReadAll(io.LimitReader(c.Body, maxBody))
	if err != nil {
		return apierrors.NewBadRequest("the body cannot be read")
	}
	if _, given, err := c.decode.Decode(body, &wanted, into); err != nil || *given != wanted {
		return apierrors.NewBadRequest("the body is not a " + wanted.Kind)
	}
	return nil
}

// loadTokenKey reads the key that signs tokens, or creates it. Tokens stay valid over restarts.
func loadTokenKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, tokenKeyFile)
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, tokenKeySize)
		_, _ = rand.Read(key) // it never fails
		err = atomicfile.Write(path, key)
	}
	if err != nil {
		return nil, fmt.Errorf("loading the key of the tokens: %w", err)
	}
	return key, nil
}
