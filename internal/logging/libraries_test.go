package logging_test

import (
	"bytes"
	"encoding/json"
	"errors"
	stdlog "log"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/environment-broker/environment-broker/internal/logging"
)

// TestCaptureLibraries is not parallel, because the loggers of the libraries are global.
func TestCaptureLibraries(t *testing.T) {
	var output bytes.Buffer

	log, err := logging.New("tested", logging.DefaultConfig(), &output)
	if err != nil {
		t.Fatal(err)
	}

	logging.CaptureLibraries(log)

	cause := errors.New("no route")

	for _, test := range []struct {
		reason string
		write  func()
		want   map[string]string
	}{
		{"errors of watches", func() { klog.ErrorS(cause, "watch failed", "type", "Shoot", "service", "x") }, map[string]string{
			"level": "warning", "msg": "watch failed", "error": "no route", "type": "Shoot", "library.service": "x", "library": "client-go",
		}},
		{"texts of client-go", func() { klog.Warningf("deprecated %d\nsecond line", 1) }, map[string]string{"msg": "deprecated 1\nsecond line"}},
		{"contextual logging", func() { klog.Background().WithName("reflector").Info("relisting") }, map[string]string{
			"level": "info", "library": "client-go", "logger": "reflector",
		}},
		{"controller-runtime", func() {
			ctrllog.Log.WithName("cache").WithValues("object", types.NamespacedName{Namespace: "a", Name: "b"}).Info("started")
		}, map[string]string{"msg": "started", "object": "a/b", "library": "controller-runtime/cache"}},
		{"objects, which may be Secrets", func() {
			ctrllog.Log.Info("found", "object", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "b"}, StringData: map[string]string{"x": "hidden"}})
		}, map[string]string{"object": "b"}},
		{"net/http", func() { stdlog.Print("http: panic serving") }, map[string]string{"level": "warning", "msg": "http: panic serving", "library": "go"}},
		{"log/slog", func() { slog.Warn("from slog") }, map[string]string{"library": "go"}},
		{"OpenTelemetry", func() { otel.Handle(cause) }, map[string]string{"error": "no route", "library": "opentelemetry"}},
		{"details", func() {
			klog.V(2).Info("hidden")
			ctrllog.Log.V(1).Info("hidden")
		}, nil},
	} {
		output.Reset()
		test.write()
		klog.Flush()

		if test.want == nil {
			if output.Len() > 0 {
				t.Errorf("%s: got %s, want nothing", test.reason, output.String())
			}

			continue
		}

		var line map[string]any
		if err := json.Unmarshal(output.Bytes(), &line); err != nil {
			t.Errorf("%s: not one line of JSON: %v: %s", test.reason, err, output.String())

			continue
		}

		test.want["service"] = "tested"

		for field, want := range test.want {
			if got, _ := line[field].(string); got != want && !strings.HasPrefix(got, want+" ") {
				t.Errorf("%s: field %s is %q, want %q: %s", test.reason, field, got, want, output.String())
			}
		}
	}
}
