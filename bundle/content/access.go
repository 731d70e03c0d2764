package content

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/hashicorp/golang-lru/v2/expirable"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

const (
	// reviewTimeout limits the total duration of the TokenReview and the SubjectAccessReview for a request.
	reviewTimeout = 10 * time.Second
	// remembered is the maximum number of entries in each cache.
	remembered = 4096
	// maxDenial is the maximum time for which a denial is cached, so that a new role takes effect soon.
	maxDenial = 10 * time.Second
)

// Access authenticates requests with TokenReviews and authorizes them with SubjectAccessReviews. The authentication filter of
// controller-runtime is not used, because it responds to invalid tokens with the status 500, and its cache lifetimes cannot be
// configured.
type Access struct {
	tokens  authenticationclient.TokenReviewInterface
	reviews authorizationclient.SubjectAccessReviewInterface
	log     logr.Logger

	users   *expirable.LRU[[sha256.Size]byte, *authenticationv1.UserInfo]
	allowed *expirable.LRU[question, bool]
	denied  *expirable.LRU[question, bool]
	unknown *expirable.LRU[[sha256.Size]byte, bool]
}

// question is the key of a cached SubjectAccessReview.
type question struct {
	token      [sha256.Size]byte
	verb, path string
}

// NewAccess returns an Access that caches permissions for the given time. A token or role may still be accepted for this time
// after it was revoked. Denials are cached for at most 10 seconds.
func NewAccess(config *rest.Config, cached time.Duration, log logr.Logger) (*Access, error) {
	authentication, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the client for TokenReviews: %w", err)
	}

	authorization, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the client for SubjectAccessReviews: %w", err)
	}

	denied := min(cached, maxDenial)

	return &Access{
		tokens: authentication.TokenReviews(), reviews: authorization.SubjectAccessReviews(), log: log,
		users:   expirable.NewLRU[[sha256.Size]byte, *authenticationv1.UserInfo](remembered, nil, cached),
		unknown: expirable.NewLRU[[sha256.Size]byte, bool](remembered, nil, denied),
		allowed: expirable.NewLRU[question, bool](remembered, nil, cached),
		denied:  expirable.NewLRU[question, bool](remembered, nil, denied),
	}, nil
}

// Protect passes permitted requests to the next handler. It responds with 401 if there is no valid token, with 403 if no role
// grants the user the method on the path, and with 503 if the API server cannot decide.
func (a *Access) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, found := bearerToken(r)
		if !found {
			refuse(w, http.StatusUnauthorized, "send a bearer token that the cluster accepts")

			return
		}

		ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
		defer cancel()

		digest := sha256.Sum256([]byte(token))

		user, err := a.user(ctx, token, digest)
		if err != nil {
			a.unavailable(w, err)

			return
		}

		if user == nil {
			refuse(w, http.StatusUnauthorized, "the cluster does not accept the bearer token")

			return
		}

		verb := strings.ToLower(r.Method)
		if r.Method == http.MethodHead {
			verb = "get" // a HEAD request returns less than a GET request
		}

		permitted, err := a.permitted(ctx, user, question{digest, verb, r.URL.Path})

		switch {
		case err != nil:
			a.unavailable(w, err)
		case !permitted:
			refuse(w, http.StatusForbidden, fmt.Sprintf("%s may not %s this path: bind the ClusterRole bundle-reader or bundle-uploader", user.Username, verb))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func bearerToken(r *http.Request) (token string, found bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")

	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer") && strings.TrimSpace(token) != ""
}

// user returns the user of a token, or nil if the token is not valid.
func (a *Access) user(ctx context.Context, token string, digest [sha256.Size]byte) (*authenticationv1.UserInfo, error) {
	if user, known := a.users.Get(digest); known {
		return user, nil
	}

	if _, known := a.unknown.Get(digest); known {
		return nil, nil
	}

	review, err := a.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("reviewing a token: %w", err)
	}

	if !review.Status.Authenticated {
		a.unknown.Add(digest, true)

		return nil, nil
	}

	a.users.Add(digest, &review.Status.User)

	return &review.Status.User, nil
}

func (a *Access) permitted(ctx context.Context, user *authenticationv1.UserInfo, asked question) (bool, error) {
	if _, known := a.allowed.Get(asked); known {
		return true, nil
	}

	if _, known := a.denied.Get(asked); known {
		return false, nil
	}

	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}

	review, err := a.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: asked.path, Verb: asked.verb},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("reviewing a permission: %w", err)
	}

	if review.Status.Allowed {
		a.allowed.Add(asked, true)
	} else {
		a.denied.Add(asked, true)
	}

	return review.Status.Allowed, nil
}

func (a *Access) unavailable(w http.ResponseWriter, err error) {
	a.log.Error(err, "a request for content could not be authorized")
	retryLater(w, "the API server of the cluster cannot authorize the request at the moment")
}
