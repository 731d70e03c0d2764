package kubeapi_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/kubeapi"
)

var errForbidden = apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("by the rules"))

// admit rejects config maps with the key "forbidden" and accepts everything else.
func admit(_ context.Context, _ client.Reader, _, object client.Object) error {
	configMap, ok := object.(*corev1.ConfigMap)
	if !ok {
		return nil
	}
	if configMap.Data != nil {
		configMap.Data["defaulted"] = "yes"
	}
	if configMap.Data["forbidden"] != "" {
		return errForbidden
	}
	return nil
}

const namespace = "here"

func options(t *testing.T, dir string) kubeapi.Options {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	core := corev1.SchemeGroupVersion
	return kubeapi.Options{Scheme: scheme, Dir: dir, Admit: admit, Kinds: []kubeapi.Kind{
		{GroupVersionKind: core.WithKind("ConfigMap"), Namespaced: true},
		{GroupVersionKind: core.WithKind("Secret"), Namespaced: true},
		{GroupVersionKind: core.WithKind("Namespace")},
	}}
}

func open(t *testing.T, dir string) client.WithWatch {
	t.Helper()
	return openWith(t, options(t, dir))
}

func openWith(t *testing.T, options kubeapi.Options) client.WithWatch {
	t.Helper()
	server, err := kubeapi.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := server.Client()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func get(t *testing.T, c client.Client, name string) *corev1.ConfigMap {
	t.Helper()
	found := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, found); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestReopenedStoreIsTheSame(t *testing.T) {
	dir := t.TempDir()
	before := open(t, dir)
	create(t, before, configMap("kept", map[string]string{"a": "1"}), configMap("deleted", nil),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err := before.Delete(t.Context(), configMap("deleted", nil)); err != nil {
		t.Fatal(err)
	}
	wanted := get(t, before, "kept")

	after := open(t, dir)
	if diff := cmp.Diff(wanted, get(t, after, "kept")); diff != "" {
		t.Errorf("the restart changed the object, -before +after:\n%s", diff)
	}
	list := &corev1.ConfigMapList{}
	if err := after.List(t.Context(), list); err != nil || len(list.Items) != 1 {
		t.Errorf("got %d config maps after the restart (%v), want 1", len(list.Items), err)
	}
	if err := after.Get(t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{}); err != nil {
		t.Errorf("an object without a namespace was lost: %v", err)
	}
	create(t, after, configMap("later", nil))
	if later := get(t, after, "later"); later.ResourceVersion <= wanted.ResourceVersion {
		t.Errorf("got resource version %s after %s, want a higher one", later.ResourceVersion, wanted.ResourceVersion)
	}
}

func TestFilesAreForTheOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	create(t, c, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "secret"}, StringData: map[string]string{"password": "1234"},
	})
	info, err := os.Stat(filepath.Join(dir, "secrets", namespace, "secret.json"))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("got file mode %o, want 600", mode)
	}
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "secret"}, secret); err != nil {
		t.Fatal(err)
	}
	if string(secret.Data["password"]) != "1234" || len(secret.StringData) > 0 {
		t.Errorf("stringData was not moved to data: %v", secret)
	}
}

func TestUnfinishedFileIsRemoved(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	create(t, c, configMap("whole", nil))
	half := filepath.Join(dir, "configmaps", namespace, ".unfinished-123")
	if err := os.WriteFile(half, []byte(`{"apiVersion":"v1","ki`), 0o600); err != nil {
		t.Fatal(err)
	}
	c = open(t, dir)
	get(t, c, "whole")
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("the unfinished file still exists: %v", err)
	}
}

func TestDamagedFileIsReported(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "configmaps", namespace, "damaged.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("not JSON"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := kubeapi.Open(options(t, dir))
	if err == nil {
		t.Error("opening a server with a damaged file must fail")
	}
}

func TestRejectedChangeIsInvisible(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	create(t, c, configMap("a", map[string]string{"color": "red"}))
	changed := get(t, c, "a")
	changed.Data["forbidden"] = "yes"
	if err := c.Update(t.Context(), changed); !apierrors.IsForbidden(err) {
		t.Fatalf("the admission rules must reject the update, got: %v", err)
	}
	if err := c.Create(t.Context(), configMap("b", map[string]string{"forbidden": "yes"})); !apierrors.IsForbidden(err) {
		t.Fatalf("the admission rules must reject the creation, got: %v", err)
	}
	for _, c := range []client.Client{c, open(t, dir)} {
		want := map[string]string{"color": "red", "defaulted": "yes"}
		if diff := cmp.Diff(want, get(t, c, "a").Data); diff != "" {
			t.Errorf("data after a rejected update, -want +got:\n%s", diff)
		}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "b"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			t.Errorf("a rejected creation stored an object: %v", err)
		}
	}
}

func TestNameCannotLeaveTheFolder(t *testing.T) {
	c := open(t, t.TempDir())
	for _, name := range []string{"../../outside", "/etc/passwd", "a/b", ".", "Upper"} {
		if err := c.Create(t.Context(), configMap(name, nil)); !apierrors.IsInvalid(err) {
			t.Errorf("the name %q must be invalid, got: %v", name, err)
		}
	}
}

func TestUpdateWithoutChange(t *testing.T) {
	c := open(t, t.TempDir())
	create(t, c, configMap("a", map[string]string{"color": "red"}))
	before := get(t, c, "a")
	if err := c.Update(t.Context(), before.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if after := get(t, c, "a"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("an update without a change raised the resource version from %s to %s", before.ResourceVersion, after.ResourceVersion)
	}
}

func TestConflict(t *testing.T) {
	c := open(t, t.TempDir())
	create(t, c, configMap("a", map[string]string{"color": "red"}))
	first, second := get(t, c, "a"), get(t, c, "a")
	first.Data["color"] = "blue"
	if err := c.Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	first.Data["color"] = "green"
	if err := c.Update(t.Context(), first); err != nil {
		t.Errorf("an update must set the new state in the given object: %v", err)
	}
	second.Data["color"] = "yellow"
	if err := c.Update(t.Context(), second); !apierrors.IsConflict(err) {
		t.Errorf("an outdated update must be a conflict, got: %v", err)
	}
}

func TestIdentityCannotBeChosen(t *testing.T) {
	c := open(t, t.TempDir())
	chosen := configMap("a", nil)
	chosen.UID = "chosen"
	create(t, c, chosen)
	if chosen.UID == "chosen" || chosen.UID == "" || chosen.CreationTimestamp.IsZero() {
		t.Errorf("got UID %q and creation time %s, want both set by the server", chosen.UID, chosen.CreationTimestamp)
	}
	changed := chosen.DeepCopy()
	changed.UID = "other"
	if err := c.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if stored := get(t, c, "a"); stored.UID != chosen.UID {
		t.Errorf("the UID changed from %s to %s", chosen.UID, stored.UID)
	}
}

func TestUpdateWithoutResourceVersion(t *testing.T) {
	c := open(t, t.TempDir())
	create(t, c, configMap("a", map[string]string{"color": "red"}))
	if err := c.Update(t.Context(), configMap("a", map[string]string{"color": "blue"})); err != nil {
		t.Fatal(err)
	}
	if stored := get(t, c, "a"); stored.Data["color"] != "blue" {
		t.Errorf("the update was not stored: got %v", stored.Data)
	}
	if err := c.Update(t.Context(), configMap("missing", nil)); !apierrors.IsNotFound(err) {
		t.Errorf("an update must not create an object, got: %v", err)
	}
}

func TestDeletePreconditions(t *testing.T) {
	c := open(t, t.TempDir())
	created := configMap("a", nil)
	create(t, c, created)
	for reason, condition := range map[string]client.Preconditions{
		"another UID":              {UID: new(types.UID("other"))},
		"another resource version": {ResourceVersion: new("0")},
	} {
		if err := c.Delete(t.Context(), configMap("a", nil), condition); !apierrors.IsConflict(err) {
			t.Errorf("a deletion with %s must be a conflict, got: %v", reason, err)
		}
	}
	if err := c.Delete(t.Context(), configMap("a", nil), client.Preconditions{UID: &created.UID}); err != nil {
		t.Error(err)
	}
}

func TestCanceledRequest(t *testing.T) {
	c := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.List(ctx, &corev1.ConfigMapList{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the context", err)
	}
}

// TestCanceledChangeIsOver checks that the call of a client whose request is canceled returns only after the server has finished
// processing the request. Tests remove the server's folder after their last request, so the server must not write files later.
func TestCanceledChangeIsOver(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		admitted := false
		settings := options(t, dir)
		settings.Admit = func(context.Context, client.Reader, client.Object, client.Object) error {
			cancel()
			time.Sleep(time.Second)
			admitted = true
			return nil
		}
		c := openWith(t, settings)
		if err := c.Create(ctx, configMap("a", nil)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the error of the context", err)
		}
		if !admitted {
			t.Error("the server was still processing the request after its client had returned")
		}
	})
}
