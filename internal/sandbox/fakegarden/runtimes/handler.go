package runtimes

import (
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	goruntime "runtime"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// handler answers what every API server answers, and serves the objects of the kinds that there are.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, answer func(http.ResponseWriter, *http.Request, served)) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+pathPrefix+"{id}"+path, s.authenticated(answer))
	}
	handle("GET /version", func(w http.ResponseWriter, r *http.Request, to served) {
		reply(w, http.StatusOK, versionInfo(s.version(r.Context(), to.technicalID)))
	})
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		handle("GET "+path, func(w http.ResponseWriter, _ *http.Request, _ served) {
			_, _ = io.WriteString(w, "ok")
		})
	}
	for path, document := range discovery() {
		handle("GET "+path, func(w http.ResponseWriter, _ *http.Request, _ served) { reply(w, http.StatusOK, document) })
	}
	for _, served := range groups() {
		root, group := rootOf(served), served.Group
		for _, place := range []string{"", "/namespaces/{namespace}"} {
			handle("GET "+root+place+"/{resource}", of(group, list))
			handle("POST "+root+place+"/{resource}", of(group, create))
			handle("GET "+root+place+"/{resource}/{name}", of(group, get))
			handle("PUT "+root+place+"/{resource}/{name}", of(group, update))
			handle("PATCH "+root+place+"/{resource}/{name}", of(group, apply))
			handle("DELETE "+root+place+"/{resource}/{name}", of(group, remove))
		}
	}
	handle("POST /api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", s.createToken)
	mux.HandleFunc(pathPrefix+"{id}/", s.authenticated(func(w http.ResponseWriter, _ *http.Request, _ served) {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the simulated runtime has nothing at this path")
	}))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no runtime answers here")
	})
	return mux
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
		GoVersion:    goruntime.Version(),
		Compiler:     goruntime.Compiler,
		Platform:     goruntime.GOOS + "/" + goruntime.GOARCH,
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
