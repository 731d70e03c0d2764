package runtimes

import (
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// handler answers what every API server answers before one asks for its objects, of which these have only ClusterRoleBindings.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(path string, answer http.HandlerFunc) {
		mux.HandleFunc("GET "+pathPrefix+"{id}"+path, s.authenticated(answer))
	}
	handle("/version", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusOK, versionInfo(s.version(r.Context(), r.PathValue("id"))))
	})
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		handle(path, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "ok")
		})
	}
	handle("/api", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
		})
	})
	handle("/api/v1", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1", APIResources: []metav1.APIResource{},
		})
	})
	handle("/apis", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{},
		})
	})
	const all, one = pathPrefix + "{id}" + bindingsPath, pathPrefix + "{id}" + bindingsPath + "/{name}"
	mux.HandleFunc("GET "+all, s.authenticated(s.bindings.list))
	mux.HandleFunc("POST "+all, s.authenticated(s.bindings.create))
	mux.HandleFunc("GET "+one, s.authenticated(s.bindings.get))
	mux.HandleFunc("PUT "+one, s.authenticated(s.bindings.update))
	mux.HandleFunc("DELETE "+one, s.authenticated(s.bindings.remove))
	mux.HandleFunc(pathPrefix+"{id}/", s.authenticated(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the simulated runtime has no such objects")
	}))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no runtime answers here")
	})
	return mux
}

// authenticated lets only administrators of the runtime through.
func (s *Server) authenticated(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.RLock()
		authorities, started := s.clients[r.PathValue("id")]
		s.mu.RUnlock()
		if !started {
			fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no runtime answers here")
			return
		}
		user, ok := verify(r, authorities)
		switch {
		case !ok:
			fail(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
		case !slices.Contains(user.Organization, v1beta1constants.ShootSystemAdminsGroupName):
			fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "user "+user.CommonName+" is no administrator of this runtime")
		default:
			next(w, r)
		}
	}
}

type subject struct {
	CommonName   string
	Organization []string
}

// verify returns whom the client certificate of the request is for, if one of these authorities has signed it.
func verify(r *http.Request, authorities *x509.CertPool) (subject, bool) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return subject{}, false
	}
	certificate := r.TLS.PeerCertificates[0]
	if _, err := certificate.Verify(x509.VerifyOptions{
		Roots: authorities, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return subject{}, false
	}
	return subject{CommonName: certificate.Subject.CommonName, Organization: certificate.Subject.Organization}, true
}

func versionInfo(kubernetes string) version.Info {
	info := version.Info{
		GitVersion:   "v" + strings.TrimPrefix(kubernetes, "v"),
		GitTreeState: "clean",
		GoVersion:    runtime.Version(),
		Compiler:     runtime.Compiler,
		Platform:     runtime.GOOS + "/" + runtime.GOARCH,
	}
	parts := strings.SplitN(strings.TrimPrefix(info.GitVersion, "v"), ".", 3)
	if len(parts) == 3 {
		info.Major, info.Minor = parts[0], parts[1]
	}
	return info
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	reply(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Reason:   reason,
		Message:  message,
		Code:     int32(code), //nolint:gosec // HTTP codes have three digits
	})
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // it fails if the client is gone, and then nobody is left to be told
}
