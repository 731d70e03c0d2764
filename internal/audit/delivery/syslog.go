package delivery

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/internal/program/reload"
)

const (
	// priority combines facility 13 (log audit) with severity 5 (notice).
	priority = 13*8 + 5
	// unknown is the value for an absent field (NILVALUE in RFC 5424).
	unknown = "-"
)

// errUnconfirmed reports that a syslog server has not confirmed a batch.
var errUnconfirmed = errors.New("the syslog server has not confirmed the messages by closing the connection")

// syslogCollector sends each batch over a separate connection.
type syslogCollector struct {
	address, service, host string
	timeout                time.Duration
	// transport provides the TLS configuration, or is nil for plain TCP.
	transport *reload.Transport
}

func newSyslog(target *url.URL, timeout time.Duration, service string, transport *reload.Transport) *syslogCollector {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = unknown
	}

	collector := &syslogCollector{address: target.Host, service: service, host: host, timeout: timeout}
	if target.Scheme == schemeSyslogTLS {
		collector.transport = transport
	}

	return collector
}

// halfCloser is a connection whose write side can be closed separately: TCP and TLS.
type halfCloser interface {
	net.Conn

	CloseWrite() error
}

// Send implements Collector. After the last message it closes the connection for writing, and waits until the server also closes
// it. The server has then read all messages: if it had stopped or failed earlier, the connection would have been reset.
func (c *syslogCollector) Send(ctx context.Context, records []chain.Record) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()

	connection, err := c.connect(ctx)
	if err != nil {
		return fmt.Errorf("connecting to the syslog server: %w", err)
	}
	defer connection.Close() //nolint:errcheck // the server has closed it, or the batch is repeated

	// Also close the connection if the context is canceled before the deadline.
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()

	if err := connection.SetDeadline(deadline(ctx, c.timeout)); err != nil {
		return fmt.Errorf("setting the deadline of the connection: %w", err)
	}

	writer := bufio.NewWriter(connection)

	for _, record := range records {
		if err := c.write(writer, record); err != nil {
			return fmt.Errorf("sending record %d to the syslog server: %w", record.Number, err)
		}
	}

	if err := errors.Join(writer.Flush(), connection.CloseWrite()); err != nil {
		return fmt.Errorf("sending to the syslog server: %w", err)
	}

	if _, err := io.CopyN(io.Discard, connection, maxResponse); !errors.Is(err, io.EOF) {
		return errors.Join(errUnconfirmed, err)
	}

	return nil
}

func (c *syslogCollector) connect(ctx context.Context) (halfCloser, error) {
	var (
		connection net.Conn
		err        error
	)

	dialer := &net.Dialer{}

	if c.transport == nil {
		connection, err = dialer.DialContext(ctx, "tcp", c.address)
	} else {
		connection, err = (&tls.Dialer{NetDialer: dialer, Config: c.config()}).DialContext(ctx, "tcp", c.address)
	}

	if err != nil {
		return nil, err
	}

	closer, is := connection.(halfCloser)
	if !is {
		return nil, errors.Join(fmt.Errorf("unexpected connection type %T", connection), connection.Close())
	}

	return closer, nil
}

func (c *syslogCollector) config() *tls.Config {
	config := c.transport.TLSConfig()
	config.NextProtos = nil // the defaults are for HTTP

	return config
}

// write writes the syslog message for a record, preceded by the length of the message (octet counting, RFC 6587).
func (c *syslogCollector) write(to *bufio.Writer, record chain.Record) error {
	text, err := encode(c.service, record)
	if err != nil {
		return err
	}

	at := unknown
	if record.Row != nil {
		if moment, err := time.Parse(time.RFC3339Nano, record.Row.At); err == nil {
			at = moment.UTC().Format("2006-01-02T15:04:05.000000Z")
		}
	}

	// The fields are: priority and version, time, host, program, process, kind of message, structured data, text.
	message := "<" + strconv.Itoa(priority) + ">1 " + at + " " + c.host + " environment-" + c.service + " - audit - " + string(text)

	_, err = to.WriteString(strconv.Itoa(len(message)) + " " + message)

	return err
}
