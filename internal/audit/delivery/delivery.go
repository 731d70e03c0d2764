package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/internal/program/reload"
	"github.com/environment-broker/environment-broker/internal/secret"
)

const defaultTimeout = 10 * time.Second

// The schemes of Config.URL.
const (
	schemeSyslog    = "syslog"
	schemeSyslogTLS = "syslog+tls"
	schemeHTTP      = "http"
	schemeHTTPS     = "https"
)

// Config configures the delivery of the audit log to a collector.
type Config struct {
	URL     string        `env:"URL"     help:"collector that receives the audit log: syslog://host:514 (TCP; UDP is not supported), syslog+tls://host:6514, or the URL of an HTTP server that accepts JSON Lines; empty turns the delivery off"`
	Token   secret.String `env:"TOKEN"   help:"bearer token for the HTTP server; empty for none"`
	CAFile  string        `env:"CA_FILE" help:"file with the CA certificates that sign the certificate of the collector; if empty, the system's CA certificates are used"`
	Timeout time.Duration `env:"TIMEOUT" help:"maximum time for delivering a batch of up to 100 entries"`
}

// DefaultConfig returns the defaults, with the delivery turned off.
func DefaultConfig() Config { return Config{Timeout: defaultTimeout} }

// Check returns an error about the URL, the token or the timeout. Callers prefix it with the name of the URL variable. The error
// does not quote the URL, which may contain a password.
func (c Config) Check() error {
	if c.URL == "" {
		return nil
	}

	if c.Timeout <= 0 {
		return errors.New("the timeout (APP_AUDIT_DELIVERY_TIMEOUT) must be positive")
	}

	target, err := url.Parse(c.URL)
	if err != nil || target.Hostname() == "" || target.User != nil {
		return errors.New("the URL must have a form such as syslog+tls://host:6514 or https://host/path, and must not contain a password")
	}

	switch target.Scheme {
	case schemeHTTP, schemeHTTPS:
		return nil
	case schemeSyslog, schemeSyslogTLS:
		if target.Port() == "" || target.Path != "" || c.Token != "" {
			return errors.New("the URL of a syslog server must have a port and no path, and the token (APP_AUDIT_DELIVERY_TOKEN) must be empty")
		}

		return nil
	case "udp", "syslog+udp":
		return errors.New("syslog over UDP is not supported, because entries could be lost without notice: " +
			"use syslog:// (TCP) or syslog+tls://, or a relay on this host that accepts syslog over TCP")
	default:
		return errors.New("the URL must begin with syslog, syslog+tls, http or https")
	}
}

// Collector receives the records of the audit log.
type Collector interface {
	// Send returns nil if the collector has confirmed all records. Its errors contain neither records nor credentials.
	Send(ctx context.Context, records []chain.Record) error
}

// New returns the collector, or nil if the delivery is turned off. service is the name of the service in messages. files reloads
// the CA certificates when their file changes.
func New(config Config, service string, files *reload.Watcher) (Collector, error) {
	if config.URL == "" {
		return nil, nil
	}

	if err := config.Check(); err != nil {
		return nil, err
	}

	transport, err := reload.ClientTLS{CAFile: config.CAFile}.Transport(files, "audit collector")
	if err != nil {
		return nil, err
	}

	target, err := url.Parse(config.URL)
	if err != nil {
		return nil, err
	}

	if target.Scheme == schemeHTTP || target.Scheme == schemeHTTPS {
		return newHTTP(config, service, transport), nil
	}

	return newSyslog(target, config.Timeout, service, transport), nil
}

// Message is the form in which a collector receives a record. It omits the salt: even after the erasure of an entry, anyone who
// has the salt could guess the personal fields and check the guess against the digest.
type Message struct {
	Service string `json:"service"`
	// Number and Hash identify the record in the chain.
	Number int64  `json:"number"`
	Hash   string `json:"hash"`
	Source string `json:"source"`
	ID     string `json:"id"`
	// At and the fields below are copied from chain.Row. They are omitted if the row was removed before the delivery. Entry is also
	// omitted if the row was erased, or if the service itself started the operation.
	At          string          `json:"at,omitempty"`
	Action      string          `json:"action,omitempty"`
	InstanceID  string          `json:"instanceID,omitempty"`
	OperationID string          `json:"operationID,omitempty"`
	Status      string          `json:"status,omitempty"`
	Account     string          `json:"account,omitempty"`
	OrderedBy   string          `json:"orderedBy,omitempty"`
	ErasedBy    string          `json:"erasedBy,omitempty"`
	Entry       json.RawMessage `json:"entry,omitempty"`
}

// encode returns the message of a record as JSON, in one line.
func encode(service string, record chain.Record) ([]byte, error) {
	message := Message{Service: service, Number: record.Number, Hash: record.Hash, Source: record.Source, ID: record.ID}

	if row := record.Row; row != nil {
		message.At, message.Action, message.InstanceID, message.OperationID = row.At, row.Action, row.InstanceID, row.OperationID
		message.Status, message.Account, message.OrderedBy, message.ErasedBy = row.Status, row.Account, row.OrderedBy, row.ErasedBy

		// Operations that the service itself started have no entry.
		if row.ErasedBy == "" && json.Valid([]byte(row.Entry)) {
			message.Entry = json.RawMessage(row.Entry)
		}
	}

	return json.Marshal(message)
}
