package kubeapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	goruntime "runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// document returns the response to a request for a version, health or discovery document, or false for any other request.
func (s *Server) document(r *http.Request) (any, bool) {
	if r.Method != http.MethodGet {
		return nil, false
	}
	switch r.URL.Path {
	case "/healthz", "/livez", "/readyz":
		return "ok", true
	case "/version":
		if s.options.Version == nil {
			return versionInfo(""), true
		}

		return versionInfo(s.options.Version(r.Context())), true
	}
	document, ok := s.documents[r.URL.Path]
	return document, ok
}

// root returns the path under which a group's kinds are served: /api for the core group, whose name is empty, and /apis for other
// groups.
func root(group schema.GroupVersion) string {
	if group.Group == corev1.GroupName {
		return "/api/" + group.Version
	}
	return "/apis/" + group.String()
}

// discovery returns the discovery documents, keyed by path. Clients such as kubectl read them to find the served kinds. Each
// group has one version. The documents never change, because the kinds of a server are fixed.
func discovery(kinds []Kind) map[string]any {
	core := metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	}
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	resources := map[string]*metav1.APIResourceList{}
	for _, kind := range kinds {
		path, group := root(kind.GroupVersion()), kind.GroupVersion().String()
		if resources[path] == nil {
			resources[path] = &metav1.APIResourceList{
				TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group,
			}
			if kind.Group != corev1.GroupName {
				version := metav1.GroupVersionForDiscovery{GroupVersion: group, Version: kind.Version}
				groups.Groups = append(groups.Groups, metav1.APIGroup{
					Name: kind.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
				})
			}
		}
		resources[path].APIResources = append(resources[path].APIResources, metav1.APIResource{
			Name: kind.plural().Resource, SingularName: strings.ToLower(kind.Kind), Kind: kind.Kind, Namespaced: kind.Namespaced,
			ShortNames: kind.ShortNames, Categories: kind.Categories, Verbs: kind.verbs(),
		})
	}
	documents := map[string]any{"/api": core, "/apis": groups}
	for path, list := range resources {
		documents[path] = list
	}
	return documents
}

// versionInfo returns the response of /version. If the version is unknown, the version numbers are empty. The build information
// and the platform describe this process.
func versionInfo(kubernetes string) version.Info {
	number := strings.TrimPrefix(kubernetes, "v")
	info := version.Info{
		GitVersion: "v" + number, GitTreeState: "clean", GoVersion: goruntime.Version(), Compiler: goruntime.Compiler,
		Platform: goruntime.GOOS + "/" + goruntime.GOARCH,
	}
	if parts := strings.SplitN(number, ".", 3); len(parts) == 3 {
		info.Major, info.Minor = parts[0], parts[1]
	}
	return info
}

// NotServed returns the error for a path that the server does not serve. It satisfies apierrors.IsNotFound but, unlike the errors
// of apierrors, names no kind.
func NotServed(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Message: message, Code: http.StatusNotFound,
	}}
}

// Refuse writes an error as a Status object, as a real API server does. An error without a status becomes an internal error.
// Handlers in front of a server use it too, so that clients can read their errors.
func Refuse(w http.ResponseWriter, err error) {
	status := statusOf(err)
	reply(w, int(status.Code), status)
}

// statusOf returns the Status of an error. An error that is not from apierrors becomes an internal error with the same message.
func statusOf(err error) *metav1.Status {
	known := apierrors.APIStatus(nil)
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return &status
}

// reply writes a response. A string is sent as text, anything else as JSON.
func reply(w http.ResponseWriter, code int, body any) {
	if text, ok := body.(string); ok {
		_, _ = io.WriteString(w, text) //nolint:gosec // the client is not a browser
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // it fails if the client has disconnected
}
