package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestGeneratedFilesAreUpToDate fails if a variable, a value or a copied file was changed without running `make generate`.
func TestGeneratedFilesAreUpToDate(t *testing.T) {
	files, err := generated(os.DirFS(resourcesFolder))
	if err != nil {
		t.Fatal(err)
	}

	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(resourcesFolder, name))
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is outdated, run `make generate`: -code +file\n%s", name, diff)
		}
	}
}

// TestDefaultsNameWhatIsMissing checks that the error for an installation without values lists all required values.
func TestDefaultsNameWhatIsMissing(t *testing.T) {
	_, err := render("{}")
	if err == nil {
		t.Fatal("the chart accepts no values, although it has no database and no Gardener")
	}

	for _, want := range []string{
		"broker.secretName: ", "APP_DATABASE_SECRET_KEYS", "broker.config.APP_DATABASE_HOST: ", "broker.database.driver to sqlite",
		"provisioner.secretName: ", "provisioner.config.APP_DATABASE_HOST: ",
		"provisioner.files.APP_GARDENER_KUBECONFIG_PATH: ", "provisioner.config.APP_GARDENER_PROJECT: ",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not contain %q:\n%v", want, err)
		}
	}
}

// TestRequiredVariablesFromSecrets checks that a required variable may come from a key of another Secret, such as the Secret of
// an operator for PostgreSQL.
func TestRequiredVariablesFromSecrets(t *testing.T) {
	_, err := render(`{broker: {secretName: s, secrets: {APP_DATABASE_HOST: {name: postgres-app, key: host}, APP_PROVISIONER_URL: {name: p, key: url}}},
		provisioner: {enabled: false}}`)
	if err != nil {
		t.Error(err)
	}
}

func TestRefusedValues(t *testing.T) {
	cases := map[string]struct {
		reason, values string
		want           []string
	}{
		"unknown value": {
			"a misspelled value would have no effect", "broker: {replica: 3}", []string{"/broker", "replica", "not allowed"},
		},
		"unknown value at the top": {
			"a misspelled value would have no effect", "brokers: {}", []string{"brokers", "not allowed"},
		},
		"SQLite with replicas": {
			"SQLite supports one process", "broker: {replicas: 2, database: {driver: sqlite}}", []string{"/broker/replicas", "want 1"},
		},
		"SQLite with the default replicas": {
			"the example sets one replica, and the change sets the default", "provisioner: {replicas: 2}", []string{"/provisioner/replicas"},
		},
		"unknown database": {"", "broker: {database: {driver: mysql}}", []string{"/broker/database/driver"}},
		"database of the bundler": {
			"the bundler has no database", "bundler: {database: {driver: sqlite}}", []string{"/bundler/database"},
		},
		"unknown variable": {
			"a misspelled variable would have no effect", "broker: {config: {APP_PUBLIC_URI: https://example.com}}",
			[]string{"broker.config.APP_PUBLIC_URI", "no such variable", "broker.env"},
		},
		"variable of another service": {
			"the broker knows no audit log policy", "broker: {config: {APP_GARDENER_AUDIT_LOGS_TENANT: t}}",
			[]string{"broker.config.APP_GARDENER_AUDIT_LOGS_TENANT", "no such variable"},
		},
		"no variable": {"", "broker: {config: {public_url: x}}", []string{"broker.config.public_url", "no such variable"}},
		"secret in plain text": {
			"everybody who can read the ConfigMap would know it", "broker: {config: {APP_AUTH_BASIC_USERS: 'a:b'}}",
			[]string{"broker.config.APP_AUTH_BASIC_USERS", "broker.secretName or broker.secrets"},
		},
		"unknown secret":        {"", "broker: {secrets: {APP_DATABASE_PASSWRD: {name: a, key: b}}}", []string{"broker.secrets.APP_DATABASE_PASSWRD"}},
		"secret without a key":  {"", "broker: {secrets: {APP_DATABASE_PASSWORD: {name: a}}}", []string{"APP_DATABASE_PASSWORD", "key"}},
		"file without a source": {"", "broker: {files: {APP_TLS_CERT_FILE: {key: a}}}", []string{"APP_TLS_CERT_FILE"}},
		"own variable": {
			"the Service and the probes would use other ports", "broker: {config: {APP_ADDRESS: ':1'}}",
			[]string{"broker.config.APP_ADDRESS", "the chart sets this variable"},
		},
		"own namespace": {
			"the rights of the bundler are for its own namespace", "bundler: {enabled: true, config: {APP_TLS_SELF_SIGNED: true, APP_NAMESPACE: x}}",
			[]string{"bundler.config.APP_NAMESPACE", "the chart sets this variable"},
		},
		"variable in two places": {
			"one of them would have no effect", "broker: {config: {APP_CATALOG_DIR: /x}, files: {APP_CATALOG_DIR: {configMap: c}}}",
			[]string{"broker.files.APP_CATALOG_DIR", "also in broker.config"},
		},
		"shared volume": {
			"Pods on two nodes cannot mount it",
			"bundler: {enabled: true, replicas: 2, config: {APP_TLS_SELF_SIGNED: true}, storage: {ephemeral: false}}",
			[]string{"bundler.storage.accessMode", "ReadWriteMany"},
		},
		"shared volume of somebody else": {
			"data in an emptyDir is the default of the bundler, but the volume takes precedence",
			"bundler: {enabled: true, replicas: 2, config: {APP_TLS_SELF_SIGNED: true}, storage: {existingClaim: mine}}",
			[]string{"bundler.storage.accessMode", "bundler.replicas to 1"},
		},
		"bundler without a certificate": {"", "bundler: {enabled: true}", []string{"bundler.files.APP_TLS_CERT_FILE"}},
		"broker alone":                  {"", "provisioner: {enabled: false}", []string{"broker.config.APP_PROVISIONER_URL"}},
		"ServiceMonitor without access": {
			"Prometheus could not read the metrics", "monitoring: {serviceMonitor: {enabled: true}}", []string{"networkPolicy.monitoring"},
		},
		"Ingress without a host":   {"", "ingress: {enabled: true}", []string{"/ingress/host"}},
		"route without a Gateway":  {"", "gateway: {enabled: true}", []string{"/gateway/parentRefs"}},
		"Ingress without a broker": {"", "{broker: {enabled: false}, ingress: {enabled: true, host: a}}", []string{"broker.enabled is false"}},
		"digest without algorithm": {"", "image: {digest: abc}", []string{"/image/digest"}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := render(merged(t, example(t, "evaluation"), c.values))
			if err == nil {
				t.Fatalf("the chart accepts %s: %s", c.values, c.reason)
			}

			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not contain %q:\n%v", want, err)
				}
			}
		})
	}
}

// TestVariables checks the values of variables in the Pods, for each source of values.
func TestVariables(t *testing.T) {
	objects := mustRender(t, "production", "broker: {config: {APP_TRACING_SAMPLE: 0.25, APP_OSB_STRICT: true, APP_BINDING_LIMIT: 12}}")
	broker := find[corev1.ConfigMap](t, objects, "ConfigMap", prefix+"-broker").Data
	bundler := find[corev1.ConfigMap](t, objects, "ConfigMap", prefix+"-bundler").Data

	for name, want := range map[string]string{
		"APP_ADDRESS": ":8080", "APP_STATUS_ADDRESS": ":8071", "APP_SHUTDOWN_DELAY": "5s", "APP_DATABASE_DRIVER": "postgres",
		"APP_PROVISIONER_URL": "http://eb-environment-broker-provisioner:3000/graphql",
		"APP_TRACING_SAMPLE":  "0.25", "APP_OSB_STRICT": "true", "APP_BINDING_LIMIT": "12",
		"APP_DATABASE_SSL_ROOT_CERT": "/etc/environment-broker/app-database-ssl-root-cert/ca.crt",
		"APP_CATALOG_DIR":            "/etc/environment-broker/app-catalog-dir",
	} {
		if broker[name] != want {
			t.Errorf("%s is %q, want %q", name, broker[name], want)
		}
	}

	if got := bundler["APP_LIMITS_BYTES"]; got != "1073741824" {
		t.Errorf("APP_LIMITS_BYTES is %q, want 1073741824: Helm reads integers as floating-point numbers", got)
	}

	// Kubernetes expands a variable only if it is defined earlier in the list.
	environment := deployments(t, objects)["bundler"].Spec.Template.Spec.Containers[0].Env
	if environment[0].Name != "APP_NAMESPACE" || environment[0].ValueFrom.FieldRef.FieldPath != "metadata.namespace" ||
		environment[1].Name != "APP_EXTERNAL_ADDRESS" || environment[1].Value != "https://eb-environment-broker-bundler.$(APP_NAMESPACE).svc:8443" {
		t.Errorf("the variables of the bundler are %+v", environment)
	}

	pod := deployments(t, objects)["broker"].Spec.Template.Spec
	container := pod.Containers[0]

	if len(container.EnvFrom) != 2 || container.EnvFrom[0].SecretRef.Name != "broker" || container.EnvFrom[1].ConfigMapRef.Name != prefix+"-broker" {
		t.Errorf("the sources of variables are %+v, want the Secret, then the ConfigMap", container.EnvFrom)
	}

	if reference := container.Env[0].ValueFrom.SecretKeyRef; container.Env[0].Name != "APP_DATABASE_PASSWORD" || reference.Name != "broker-postgres" || reference.Key != "password" {
		t.Errorf("the password is %+v", container.Env[0])
	}

	// Each mount of a file has its volume.
	for _, mount := range container.VolumeMounts {
		if !slices.ContainsFunc(pod.Volumes, func(volume corev1.Volume) bool { return volume.Name == mount.Name }) {
			t.Errorf("the mount %s has no volume", mount.Name)
		}
	}

	tls := mustRender(t, "production", "provisioner: {files: {APP_TLS_CERT_FILE: {secret: a, key: b}}}")
	if got := find[corev1.ConfigMap](t, tls, "ConfigMap", prefix+"-broker").Data["APP_PROVISIONER_URL"]; !strings.HasPrefix(got, "https://") {
		t.Errorf("the address of a Provisioner with TLS is %q", got)
	}
}

// TestVariablesAreDocumented checks that the chart names only variables that exist, and that the Pods of a service get only variables of that
// service.
func TestVariablesAreDocumented(t *testing.T) {
	all := map[string]bool{}
	known := map[string]map[string]bool{}

	for service, variables := range configurations() {
		known[service] = map[string]bool{}

		for _, each := range variables {
			all[each.Name], known[service][each.Name] = true, true
		}
	}

	for _, name := range []string{"production", "evaluation"} {
		objects := mustRender(t, name, "")

		for service, deployment := range deployments(t, objects) {
			used := slices.Collect(maps.Keys(find[corev1.ConfigMap](t, objects, "ConfigMap", deployment.Name).Data))
			for _, each := range deployment.Spec.Template.Spec.Containers[0].Env {
				used = append(used, each.Name)
			}

			for _, variable := range used {
				if !known[service][variable] {
					t.Errorf("%s: %s has no variable %s", name, service, variable)
				}
			}
		}
	}

	found := 0
	pattern := regexp.MustCompile(`\bAPP_[A-Z0-9_]*[A-Z0-9]\b`)

	err := filepath.WalkDir(filepath.Join(resourcesFolder, chartFolder), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		content, err := os.ReadFile(path)
		for _, variable := range pattern.FindAllString(string(content), -1) {
			found++

			if !all[variable] {
				t.Errorf("%s: there is no variable %s", path, variable)
			}
		}

		return err
	})
	if err != nil || found < 50 {
		t.Errorf("found %d variables, %v: the test looks for the wrong ones", found, err)
	}
}

// TestHelmVersion checks that the Helm program with which the tests install the chart has the same version as the library that
// renders it.
func TestHelmVersion(t *testing.T) {
	texts := map[string]string{}

	for _, name := range []string{"Makefile", "go.mod"} {
		content, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}

		texts[name] = string(content)
	}

	version := regexp.MustCompile(`(?m)^HELM_VERSION := (\S+)$`).FindStringSubmatch(texts["Makefile"])
	if version == nil || !strings.Contains(texts["go.mod"], "helm.sh/helm/v3 "+version[1]+"\n") {
		t.Errorf("the Makefile has the version %v, go.mod another one", version)
	}
}
