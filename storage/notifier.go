package storage

import (
	"context"
	"time"

	"github.com/lib/pq"
	"github.com/sirupsen/logrus"
)

const (
	// wakeChannel is the channel of LISTEN and NOTIFY.
	wakeChannel = "operations_due"
	// notifyPause collects the notices of a burst into one: NOTIFY makes commits queue.
	notifyPause = 20 * time.Millisecond
	// notifyTimeout bounds the sending of a notice.
	notifyTimeout = 5 * time.Second
	// reconnectMin and reconnectMax bound the wait before a lost listening connection is made again.
	reconnectMin = 200 * time.Millisecond
	reconnectMax = 10 * time.Second
)

// Notifier tells the other replicas that operations are due. A lost notice costs one poll. SQLite has no other replicas to tell:
// there it does nothing.
type Notifier struct {
	db      *DB
	log     logrus.FieldLogger
	pending chan struct{}
}

// NewNotifier returns a notifier; Run makes it work.
func (db *DB) NewNotifier(log logrus.FieldLogger) *Notifier {
	return &Notifier{db: db, log: log, pending: make(chan struct{}, 1)}
}

// Notify has the other replicas woken soon. It is called after a commit, and never blocks.
func (n *Notifier) Notify() {
	select {
	case n.pending <- struct{}{}:
	default: // a notice is about to be sent
	}
}

// Run sends notices and calls wake for those of other replicas, until the context ends.
func (n *Notifier) Run(ctx context.Context, wake func()) error {
	if n.db.config.Driver != DriverPostgres {
		<-ctx.Done()

		return nil
	}

	unheard := func(_ pq.ListenerEventType, err error) {
		if err != nil {
			n.log.WithError(err).Warn("notices of other replicas are not heard, polling goes on")
		}
	}
	listener := pq.NewListener(n.db.config.postgresDSN(), reconnectMin, reconnectMax, unheard)
	defer func() { _ = listener.Close() }()

	listening := make(chan error, 1)
	go func() { listening <- listener.Listen(wakeChannel) }() // waits for the database to be there

	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-listening:
			unheard(pq.ListenerEventConnectionAttemptFailed, err)
		case <-listener.Notify:
			wake()
		case <-n.pending:
			n.send(ctx)
		}
	}
}

func (n *Notifier) send(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(notifyPause):
	}

	deadline, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()

	if _, err := Exec(deadline, n.db.writer, "SELECT pg_notify(?, '')", wakeChannel); err != nil && ctx.Err() == nil {
		n.log.WithError(err).Warn("other replicas could not be told of due operations")
	}
}
