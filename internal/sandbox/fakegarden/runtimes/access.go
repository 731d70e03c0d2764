package runtimes

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
)

const (
	administrator = "cluster-admin"

	tokenKeyFile = "token.key"
	tokenKeySize = 32
	// The minimum and the default lifetime of a token, in seconds. There is no maximum: unlike a real API server, the simulated
	// one always grants the requested lifetime.
	minTokenSeconds     = 600
	defaultTokenSeconds = 3600
)

// user is the authenticated user of one request. Roles are read again for each request, so that removing a binding takes effect
// immediately.
type user struct {
	name string
	// roles are the names of the ClusterRoles that are bound to the user.
	roles []string
}

// userKey is the context key for the user who sent a request.
type userKey struct{}

// authenticate returns the user of a request, identified by a client certificate or a token. If a request has both, the
// certificate takes precedence. Like a real API server, it returns 401 without valid credentials and 403 for a user without a
// role. The error does not say why credentials are invalid, because the reason would help an attacker.
func (s *Server) authenticate(r *http.Request, runtime *runtime) (user, error) {
	found, ok := runtime.byCertificate(r)
	if !ok {
		if found, ok = s.byToken(r, runtime); !ok {
			return user{}, apierrors.NewUnauthorized("Unauthorized")
		}
	}
	if len(found.roles) == 0 {
		forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
		forbidden.ErrStatus.Message = "user " + found.name + " has no role in this runtime"
		return user{}, forbidden
	}
	return found, nil
}

// byCertificate accepts a client certificate that the runtime's client CA has signed. The TLS handshake cannot verify the
// certificate, because the CA depends on the path of the request. Members of the groups in Gardener's admin kubeconfigs are
// administrators; other users with a certificate have no role.
func (r *runtime) byCertificate(request *http.Request) (user, bool) {
	if request.TLS == nil || len(request.TLS.PeerCertificates) == 0 {
		return user{}, false
	}
	certificate := request.TLS.PeerCertificates[0]
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: r.clients, KeyUsages: usage}); err != nil {
		return user{}, false
	}
	found := user{name: certificate.Subject.CommonName}
	for _, group := range []string{v1beta1constants.ShootSystemAdminsGroupName, v1beta1constants.ShootProjectAdminsGroupName} {
		if slices.Contains(certificate.Subject.Organization, group) {
			found.roles = []string{administrator}
		}
	}
	return found, true
}

// byToken accepts an unexpired token for this runtime if its ServiceAccount exists. The account must have the UID in the token: a
// token of a deleted account stays invalid when an account with the same name is created.
func (s *Server) byToken(request *http.Request, runtime *runtime) (user, bool) {
	token, given := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	if !given {
		return user{}, false
	}
	return s.ofToken(request.Context(), token, runtime.technicalID, runtime.api)
}

// ofToken returns the user that a ServiceAccount token authenticates in the runtime with the given technical ID. It returns false
// if the token is invalid or its account no longer exists. objects reads the objects of the runtime.
func (s *Server) ofToken(ctx context.Context, token, technicalID string, objects client.Reader) (user, bool) {
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.HS256})
	if err != nil {
		return user{}, false
	}
	var claims jwt.Claims
	var private privateClaims
	if err := parsed.Claims(s.tokenKey, &claims, &private); err != nil {
		return user{}, false
	}
	expected := jwt.Expected{AnyAudience: jwt.Audience{technicalID}, Time: time.Now()}
	if err := claims.ValidateWithLeeway(expected, 0); err != nil {
		return user{}, false
	}
	account := &corev1.ServiceAccount{}
	key := client.ObjectKey{Namespace: private.Kubernetes.Namespace, Name: private.Kubernetes.Account.Name}
	if err := objects.Get(ctx, key, account); err != nil || string(account.UID) != private.Kubernetes.Account.UID {
		return user{}, false
	}
	return user{name: claims.Subject, roles: rolesOf(ctx, objects, key)}, true
}

// rolesOf returns the ClusterRoles that are bound to an account. It ignores bindings of groups. RoleBindings cannot exist,
// because that kind is read-only. An account without a role is authenticated but has no permissions. If the bindings cannot be
// listed, rolesOf returns no roles, so that a failure never grants permissions.
func rolesOf(ctx context.Context, objects client.Reader, account client.ObjectKey) []string {
	bindings := &rbacv1.ClusterRoleBindingList{}
	if err := objects.List(ctx, bindings); err != nil {
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

// privateClaims contains Kubernetes' private claims in a token: the account for which the token was issued. It has the JSON
// names of Kubernetes, so that tests can read the claims as in a real runtime's token.
type privateClaims struct {
	Kubernetes struct {
		Namespace string           `json:"namespace"`
		Account   accountReference `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

// accountReference identifies a ServiceAccount. The UID distinguishes it from an earlier account with the same name.
type accountReference struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// issueToken sets the status of a token request for an account. The token is a JWT signed with the server's key. It has the
// subject and the private claims of a Kubernetes service account token; its audience is the technical ID, so it is valid only in
// this runtime.
func (s *Server) issueToken(
	ctx context.Context, objects client.Reader, technicalID string, key client.ObjectKey, request *authenticationv1.TokenRequest,
) error {
	account := &corev1.ServiceAccount{}
	if err := objects.Get(ctx, key, account); err != nil {
		return err
	}
	seconds := int64(defaultTokenSeconds)
	if request.Spec.ExpirationSeconds != nil {
		seconds = *request.Spec.ExpirationSeconds
	}
	if seconds < minTokenSeconds {
		return apierrors.NewBadRequest(
			fmt.Sprintf("spec.expirationSeconds: may not specify a duration less than %d seconds", minTokenSeconds))
	}
	now := time.Now()
	expires := now.Add(time.Duration(seconds) * time.Second).Truncate(time.Second)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: s.tokenKey}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return err
	}
	var private privateClaims
	private.Kubernetes.Namespace = key.Namespace
	private.Kubernetes.Account = accountReference{Name: key.Name, UID: string(account.UID)}
	token, err := jwt.Signed(signer).Claims(private).Claims(jwt.Claims{
		Audience: jwt.Audience{technicalID}, Subject: accountPrefix + key.Namespace + ":" + key.Name,
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(expires),
	}).Serialize()
	if err != nil {
		return err
	}
	request.TypeMeta = metav1.TypeMeta{Kind: "TokenRequest", APIVersion: authenticationv1.SchemeGroupVersion.String()}
	request.ObjectMeta = metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace, CreationTimestamp: metav1.NewTime(now)}
	request.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(expires)}
	return nil
}

// loadTokenKey loads the key that signs tokens, or creates it. All runtimes share the key, because the audience of a token
// identifies its runtime. Tokens remain valid across restarts. To invalidate all tokens, remove the key file and restart the
// server.
func loadTokenKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, tokenKeyFile)
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, tokenKeySize)
		_, _ = rand.Read(key) // Read never fails
		err = atomicfile.Write(path, key)
	}
	if err != nil {
		return nil, fmt.Errorf("loading the key that signs tokens: %w", err)
	}
	return key, nil
}
