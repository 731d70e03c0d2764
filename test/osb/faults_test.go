package osb

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/test/harness"
)

// rowFailedRequestChangesNothing sends requests while another connection holds the write lock of the broker's database.
func rowFailedRequestChangesNothing(r *row) {
	isolated := r.isolated()
	id, unknown := isolated.createInstance(), isolated.newID()
	before := isolated.get(harness.InstancePath(id)).Raw

	for _, call := range []harness.Call{
		{Method: http.MethodPut, Path: harness.InstancePath(unknown) + harness.Incomplete, Body: isolated.order()},
		{Method: http.MethodDelete, Path: harness.InstancePath(id) + harness.Incomplete + "&" + ids},
	} {
		release := isolated.lockDatabase()

		got, err := send(isolated.Broker.Endpoint, call)
		if err != nil {
			r.Fatalf("%v", err)
		}

		release()
		checkResponse(r, call, got)
		r.want("a locked database", got, http.StatusServiceUnavailable)
	}

	if after := isolated.get(harness.InstancePath(id)).Raw; after != before {
		r.Errorf("a failed request changed the instance:\nbefore %s\nafter  %s", before, after)
	}

	isolated.want("nothing was created", isolated.poll(harness.InstancePath(unknown), ""), http.StatusNotFound)
	isolated.want("the same order is accepted afterwards", isolated.put(unknown, isolated.order()), http.StatusAccepted)
}

// lockDatabase holds the write lock of the broker's database until release is called.
func (e *env) lockDatabase() (release func()) {
	e.Helper()

	locker := harness.OpenDatabase(e, e.Settings.Database)
	ctx, cancel := context.WithTimeout(e.Context(), harness.Patience)
	locked, unlock, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)

	go func() {
		done <- locker.InTx(ctx, func(tx storage.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE instances SET name = name")
			close(locked)
			<-unlock

			return err
		})
	}()

	<-locked

	return func() {
		close(unlock)

		if err := <-done; err != nil {
			e.Error(err)
		}

		cancel()
	}
}

func rowBrokerServesTLS(r *row) {
	certificate, key, pool := selfSigned(r)
	isolated := r.isolated(setting("APP_TLS_CERT_FILE="+certificate), setting("APP_TLS_KEY_FILE="+key))

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}

	secured := isolated.Broker.Endpoint
	secured.URL = strings.Replace(secured.URL, "http:", "https:", 1)

	request, err := secured.Request(r.t.Context(), harness.Call{Method: http.MethodGet, Path: "/v2/catalog"})
	if err != nil {
		r.t.Fatal(err)
	}

	response, err := client.Do(request)
	if err != nil {
		r.Fatalf("the catalog over TLS: %v", err)
	}
	defer response.Body.Close()

	if response.StatusCode != http.StatusOK {
		r.Errorf("the catalog over TLS: status %d", response.StatusCode)
	}
}

// selfSigned writes a self-signed certificate for the loopback address and its key to files. It returns the paths, and a pool
// that trusts the certificate.
func selfSigned(r *row) (certificateFile, keyFile string, pool *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}

	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		r.t.Fatal(err)
	}

	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		r.t.Fatal(err)
	}

	folder := r.t.TempDir()
	certificateFile, keyFile = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")

	for file, block := range map[string]*pem.Block{
		certificateFile: {Type: "CERTIFICATE", Bytes: signed}, keyFile: {Type: "PRIVATE KEY", Bytes: encoded},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}

	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))

	return certificateFile, keyFile, pool
}
