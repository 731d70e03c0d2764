package kubeapi_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func watchMaps(t *testing.T, c client.WithWatch, options metav1.ListOptions) watch.Interface {
	t.Helper()
	watching, err := startWatch(t, c, namespace, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watching.Stop)
	return watching
}

func startWatch(t *testing.T, c client.WithWatch, namespace string, options metav1.ListOptions) (watch.Interface, error) {
	t.Helper()
	return c.Watch(t.Context(), &corev1.ConfigMapList{}, &client.ListOptions{Namespace: namespace, Raw: &options})
}

// received returns the pending events of a watch, formatted like "ADDED name", followed by "closed" if the watch has ended.
func received(watching watch.Interface) []string {
	var events []string
	for {
		synctest.Wait()
		select {
		case event, open := <-watching.ResultChan():
			if !open {
				return append(events, "closed")
			}
			object, _ := event.Object.(client.Object)
			events = append(events, fmt.Sprint(event.Type, " ", object.GetName()))
		default:
			return events
		}
	}
}

func expect(t *testing.T, watching watch.Interface, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, received(watching)); diff != "" {
		t.Errorf("events -want +got:\n%s", diff)
	}
}

func labelled(name, color string) *corev1.ConfigMap {
	object := configMap(name, nil)
	object.Labels = map[string]string{"color": color}
	return object
}

func TestWatchStartsWithStoredObjects(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := open(t, dir)
		create(t, c, configMap("a", nil))
		watching := watchMaps(t, c, metav1.ListOptions{})
		expect(t, watching, "ADDED a")
		create(t, c, configMap("b", nil))
		changed := get(t, c, "a")
		changed.Data = map[string]string{"color": "red"}
		if err := c.Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(t.Context(), configMap("b", nil)); err != nil {
			t.Fatal(err)
		}
		expect(t, watching, "ADDED b", "MODIFIED a", "DELETED b")
		watching.Stop()
		expect(t, watching, "closed")
	})
}

func TestWatchFromAVersionMissesNothing(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := open(t, dir)
		create(t, c, configMap("a", nil))
		list := &corev1.ConfigMapList{}
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		create(t, c, configMap("between", nil))
		watching := watchMaps(t, c, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		create(t, c, configMap("after", nil))
		expect(t, watching, "ADDED between", "ADDED after")
	})
}

func TestWatchOfForgottenVersionExpires(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := open(t, dir)
		create(t, c, configMap("a", nil))
		version := get(t, c, "a").ResourceVersion
		create(t, c, configMap("b", nil))
		restarted := open(t, dir)
		if _, err := startWatch(t, restarted, "", metav1.ListOptions{ResourceVersion: version}); !apierrors.IsResourceExpired(err) {
			t.Errorf("got %v, want the error of an expired version", err)
		}
	})
}

func TestWatchBySelectors(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := open(t, dir)
		create(t, c, labelled("a", "red"), labelled("b", "blue"))
		red := watchMaps(t, c, metav1.ListOptions{LabelSelector: "color=red"})
		named := watchMaps(t, c, metav1.ListOptions{FieldSelector: "metadata.name=b"})
		expect(t, red, "ADDED a")
		expect(t, named, "ADDED b")
		for name, color := range map[string]string{"a": "blue", "b": "red"} {
			changed := get(t, c, name)
			changed.Labels["color"] = color
			if err := c.Update(t.Context(), changed); err != nil {
				t.Fatal(err)
			}
			expect(t, red, map[string]string{"a": "DELETED a", "b": "ADDED b"}[name])
		}
		expect(t, named, "MODIFIED b")
		if _, err := startWatch(t, c, "", metav1.ListOptions{FieldSelector: "data.color=red"}); !apierrors.IsBadRequest(err) {
			t.Errorf("got %v, want a bad request error", err)
		}
	})
}

func TestWatchWithBookmark(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := open(t, dir)
		create(t, c, configMap("a", nil))
		expect(t, watchMaps(t, c, metav1.ListOptions{SendInitialEvents: new(true)}), "ADDED a", "BOOKMARK ")
	})
}

func TestSlowWatcherBlocksNobody(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := open(t, dir)
		slow := watchMaps(t, c, metav1.ListOptions{})
		const many = 500 // exceeds the buffer of every channel
		for i := range many {
			create(t, c, configMap(fmt.Sprintf("c-%d", i), nil))
		}
		if got := len(received(slow)); got != many {
			t.Errorf("got %d events, want %d", got, many)
		}
	})
}

func TestWatchersDoNotShareObjects(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := open(t, dir)
		first, second := watchMaps(t, c, metav1.ListOptions{}), watchMaps(t, c, metav1.ListOptions{})
		create(t, c, configMap("a", map[string]string{"color": "red"}))
		event := <-first.ResultChan()
		spoiled, _ := event.Object.(*corev1.ConfigMap)
		spoiled.Data["color"] = "spoiled"
		event = <-second.ResultChan()
		if object, _ := event.Object.(*corev1.ConfigMap); object.Data["color"] != "red" {
			t.Errorf("two watches share an object: %v", object.Data)
		}
		if stored := get(t, c, "a"); stored.Data["color"] != "red" {
			t.Errorf("a watch shares an object with the store: %v", stored.Data)
		}
	})
}
