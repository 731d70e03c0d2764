package service_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/provisioner/service"
)

// TestOrderWithoutSizeMachineTypeAndVersion orders a cluster with the fields that have no default.
func TestOrderWithoutSizeMachineTypeAndVersion(t *testing.T) {
	f := start(t, time.Millisecond)

	body, err := json.Marshal(map[string]any{"query": `mutation { result: provisionRuntime(config: {runtimeInput: {name: "mine"}, clusterConfig: {
		gardenerConfig: {name: "c-1234567", provider: "aws", targetSecret: "aws", region: "eu-central-1", workerCidr: "10.250.0.0/16",
			providerSpecificConfig: {awsConfig: {vpcCidr: "10.250.0.0/16", awsZones: [{name: "eu-central-1a", workerCidr: "10.250.0.0/19",
				publicCidr: "10.250.32.0/20", internalCidr: "10.250.48.0/20"}]}}}}}) { id } }`})
	if err != nil {
		t.Fatal(err)
	}

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}

	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Tenant", tenant)

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}

	var answer struct {
		Data struct{ Result struct{ ID string } }
	}

	if err := json.Unmarshal(text, &answer); err != nil || answer.Data.Result.ID == "" {
		t.Fatalf("%v: %s", err, text)
	}

	f.succeeded(answer.Data.Result.ID)

	created, _ := f.shoot("c-1234567")
	pool := created.Spec.Provider.Workers[0]

	if !strings.HasPrefix(created.Spec.Kubernetes.Version, "1.35.") || pool.Machine.Type != "m6i.large" || pool.Minimum != 1 || pool.Maximum != 3 {
		t.Errorf("Kubernetes %s, %d to %d machines of type %s", created.Spec.Kubernetes.Version, pool.Minimum, pool.Maximum, pool.Machine.Type)
	}
}

// TestInvalidDefaults configures defaults that no order could have.
func TestInvalidDefaults(t *testing.T) {
	for want, change := range map[string]func(*service.Config){
		`APP_GARDENER_DEFAULT_KUBERNETES_VERSION: must look like 1.33 or 1.33.2, not "latest"`: func(config *service.Config) {
			config.Gardener.Shoots.KubernetesVersion = "latest"
		},
		`APP_GARDENER_DEFAULT_MACHINE_TYPES: "gke:small"`: func(config *service.Config) {
			config.Gardener.Shoots.MachineTypes = map[string]string{"gke": "small"}
		},
	} {
		config := service.DefaultConfig()
		change(&config)

		if _, err := service.New(t.Context(), config, nil, logging.Discard()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}
