package storage

import (
	"context"
	"time"

	"github.com/lib/pq"
	"github.com/sirupsen/logrus"
)

const (
	// wakeChannel is the name of the channel for LISTEN and NOTIFY.
	wakeChannel = "operations_due"
	// notifyPause is the pause before each notification. It limits the number of notifications during a burst of calls to Notify,
	// because PostgreSQL serializes the commits of transactions that use NOTIFY.
	notifyPause = 20 * time.Millisecond
	// notifyTimeout limits how long it may take to send a notification.
	notifyTimeout = 5 * time.Second
	// reconnectMin and reconnectMax limit the wait before a lost listening connection is reopened.
	reconnectMin = 200 * time.Millisecond
	reconnectMax = 10 * time.Second
)

// Notifier notifies the other replicas when operations are due. It uses PostgreSQL's LISTEN and NOTIFY. A lost notification delays
// an operation by at most one poll interval. With SQLite, which supports only one replica, Notifier does nothing.
type Notifier struct {
	db      *DB
	log     logrus.FieldLogger
	pending chan struct{}
}

// NewNotifier returns a notifier. It sends nothing until Run is called.
func (db *DB) NewNotifier(log logrus.FieldLogger) *Notifier {
	return &Notifier{db: db, log: log, pending: make(chan struct{}, 1)}
}

// Notify wakes the other replicas after a short delay. It must be called after a commit that makes an operation due. It never
// blocks.
func (n *Notifier) Notify() {
	select {
	case n.pending <- struct{}{}:
	default: // already pending
	}
}

// Run sends notifications until the context ends, and calls wake for each notification that it receives. A replica also
// receives its own notifications. Run reconnects automatically and always returns nil.
func (n *Notifier) Run(ctx context.Context, wake func()) error {
	if n.db.config.Driver != DriverPostgres {
		<-ctx.Done()

		return nil
	}

	logLoss := func(_ pq.ListenerEventType, err error) {
		if err != nil {
			n.log.WithError(err).Warn("not receiving notifications from other replicas, falling back to polling")
		}
	}
	listener := pq.NewListener(n.db.config.postgresDSN(false), reconnectMin, reconnectMax, logLoss)
	defer func() { _ = listener.Close() }()

	listening := make(chan error, 1)
	go func() { listening <- listener.Listen(wakeChannel) }() // blocks until the database responds

	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-listening:
			logLoss(pq.ListenerEventConnectionAttemptFailed, err)
		case <-listener.Notify:
			wake()
		case <-n.pending:
			n.send(ctx)
		}
	}
}

// send notifies the other replicas. It logs a failure but does not return it, because the other replicas find the operations at
// their next poll anyway.
func (n *Notifier) send(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(notifyPause):
	}

	deadline, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()

	if _, err := Exec(deadline, n.db.writer, "SELECT pg_notify(?, '')", wakeChannel); err != nil && ctx.Err() == nil {
		n.log.WithError(err).Warn("notifying other replicas of due operations failed")
	}
}
